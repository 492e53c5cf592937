//! `GET /api/v1/scheduler/rebalance/{id}/moves`

use axum::Json;
use evenkeel_commands::ListedMove;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Page, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::read_id;
use crate::call::{Answer, Call};
use crate::cursor::MovePosition;
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, PathId};

/// One job that a rebalance moves to another start time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct MoveView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Next run time before the move.
    pub old_time: Timestamp,
    /// Next run time after the move.
    pub new_time: Timestamp,
    /// True if the job was moved, false if it was skipped, null until the rebalance reaches this
    /// job.
    pub made: Option<bool>,
}

impl From<ListedMove> for MoveView {
    fn from(listed: ListedMove) -> Self {
        let ListedMove { job, old_at, new_at, made, .. } = listed;
        Self { job_id: job, old_time: old_at, new_time: new_at, made }
    }
}

list_answer! {
    /// One page of the jobs that a rebalance moves.
    MoveList {
        /// The moved jobs, in the order in which the rebalance moves them.
        moves: MoveView
    }
}

/// Lists the jobs that a rebalance or a plan moves, with their old and new run times.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalance/{id}/moves",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance or plan"), PageQuery),
    responses((status = 200, description = "One page of the jobs that the rebalance moves", body = MoveList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_rebalance_moves(
    call: Call,
    PathId(id): PathId,
    mut params: Params,
) -> Answer<MoveList> {
    let request: PageRequest<MovePosition> = PageQuery::take(&mut params);
    params.finish()?;
    let from = request.after.map_or(u64::from(request.offset), |position| position.0);
    let found = call.balancing.moves(call.scope(), read_id(&id)?, from, request.limit).await?;
    let page = Page {
        items: found.moves,
        total: found.total,
        total_is_estimate: false,
        next: found.next.map(MovePosition),
    };
    Ok(Json(MoveList::new(&call, &request, page, MoveView::from)))
}
