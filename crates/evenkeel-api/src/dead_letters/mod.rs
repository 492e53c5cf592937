//! `/api/v1/dead-letters…`, a file per endpoint.

mod delete;
mod get;
#[expect(unused_qualifications, reason = "the OpenAPI macro writes them")]
mod list;
mod many;
mod redrive;
mod view;

use evenkeel_core::RunId;

use crate::problem::{Problem, ProblemType};

pub use delete::DeletedLetterView;
pub use list::DeadLetterList;
pub use many::{DeletedLettersView, LetterIdsDocument, LetterResultView, RedrivenLettersView};
pub use redrive::RedrivenView;
pub use view::DeadLetterView;

pub(crate) use delete::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use many::*;
pub(crate) use redrive::*;

/// The id of a letter in a path.
fn read_id(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|error| {
        let detail = format!("there is no such dead letter: the id in the path is {error}");
        Problem::new(ProblemType::NotFound, detail)
    })
}

fn missing() -> Problem {
    Problem::new(ProblemType::NotFound, "there is no such dead letter")
}
