//! `/api/v1/scheduler/rebalance…`, one file per endpoint.

pub(crate) mod act;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod moves;
pub(crate) mod preview;
pub(crate) mod stop;
pub(crate) mod undo;
mod view;

use uuid::Uuid;

use crate::problem::{Problem, ProblemType};

fn read_id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| {
        let detail = "there is no such rebalance: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })
}
