//! `/api/v1/executions…`, a file per endpoint.

mod get;
mod list;
mod view;

pub use list::ExecutionList;
pub use view::{ExecutionView, SkippedView};

pub(crate) use get::*;
pub(crate) use list::*;
