//! `/api/v1/nodes`

mod list;

pub use list::*;
