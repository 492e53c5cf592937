//! `/api/v1/executions…`, a file per endpoint.

mod cancel;
mod get;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;
mod logs;
mod view;

use evenkeel_core::AttemptId;

use crate::problem::{Problem, ProblemType};

pub use cancel::CancelledView;
pub use list::ExecutionList;
pub use logs::LogView;
pub use view::{ExecutionView, ProgressView, SkippedView};

pub(crate) use cancel::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use logs::*;

/// The id of an execution or run in a path.
fn read_id(text: &str) -> Result<AttemptId, Problem> {
    text.parse().map_err(|error| {
        let detail = format!("there is no such execution: the id in the path is {error}");
        Problem::new(ProblemType::NotFound, detail)
    })
}
