//! `/api/v1/nodes`

mod list;

pub use list::{NodeList, NodeView};

pub(crate) use list::*;
