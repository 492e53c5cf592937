//! Background work on stored data.
//!
//! Loops: [`pruner`] deletes old history (deduplication keys with [`dedup_sweeper`]),
//! [`auto_pauser`] pauses failing jobs, [`limit_release`] requeues runs that wait for a permit,
//! [`reprioritizer`] recomputes ranks after settings change, [`load_recount`] updates the load of
//! jobs, and [`stale_targets`] triggers jobs of targets without a recent success.

pub(crate) mod auto_pauser;
pub(crate) mod dedup_sweeper;
pub(crate) mod limit_release;
pub(crate) mod load_recount;
pub(crate) mod pruner;
pub(crate) mod reprioritizer;
pub(crate) mod stale_targets;
