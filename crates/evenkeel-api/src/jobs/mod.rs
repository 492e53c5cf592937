//! `/api/v1/jobs…`, a file per endpoint.

mod create;
mod delete;
mod document;
mod get;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;
mod trigger;
mod veil;
mod view;

use evenkeel_core::JobId;

use crate::problem::{Problem, ProblemType};

pub use delete::DeletedView;
pub use document::{JobDocument, ScheduleForm};
pub use list::JobList;
pub use trigger::TriggeredView;
pub use view::{JobView, ScheduleView};

pub(crate) use create::*;
pub(crate) use delete::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use trigger::*;

/// The id of a job in a path. What can't be an id is the id of no job.
pub(crate) fn read_id(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| {
        let detail = "there is no such job: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })
}
