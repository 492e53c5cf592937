//! `/api/v1/dead-letters…`, one file per endpoint.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod many;
pub(crate) mod redrive;
mod view;

use evenkeel_core::RunId;

use crate::params;
use crate::problem::{Problem, ProblemType};

fn read_id(text: &str) -> Result<RunId, Problem> {
    params::read_id(text, "dead letter")
}

fn missing() -> Problem {
    Problem::new(ProblemType::NotFound, "there is no such dead letter")
}
