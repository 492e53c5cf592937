//! `/api/v1/scheduler/rebalance…`, one file per endpoint.

mod act;
mod get;
mod list;
mod moves;
mod preview;
mod stop;
mod undo;
mod view;

use uuid::Uuid;

use crate::problem::{Problem, ProblemType};

pub(crate) use act::*;
pub(crate) use get::*;
pub(crate) use list::*;
pub(crate) use moves::*;
pub(crate) use preview::*;
pub(crate) use stop::*;
pub(crate) use undo::*;

fn read_id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| {
        let detail = "there is no such rebalance: the id in the path is not a UUID";
        Problem::new(ProblemType::NotFound, detail)
    })
}
