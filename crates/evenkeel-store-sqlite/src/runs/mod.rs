//! What workers and onlookers do with runs.

mod admit;
pub(crate) mod cancel;
pub(crate) mod choose;
pub(crate) mod claim;
pub(crate) mod finish;
pub(crate) mod list;
pub(crate) mod owned;
pub(crate) mod prune;
pub(crate) mod requeue;
mod settle;
