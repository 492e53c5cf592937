//! `GET /api/v1/scheduler/rebalance/{id}/moves`

use axum::Json;
use evenkeel_commands::ListedMove;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::Page;

use super::read_id;
use crate::call::{Answer, Call};
use crate::cursor::MovePosition;
use crate::page::{PageQuery, Paged, list_answer};
use crate::params::PathId;
use crate::view::view;

view! {
    /// One job that a rebalance moves to another start time.
    MoveView::new(listed: ListedMove) {}

    /// Id of the job.
    job_id: JobId as uuid::Uuid = listed.job,
    /// Next run time before the move.
    old_time: Timestamp = listed.old_at,
    /// Next run time after the move.
    new_time: Timestamp = listed.new_at,
    /// True if the job was moved, false if it was skipped, null until the rebalance reaches this
    /// job.
    made: Option<bool> = listed.made,
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
    get, path = "/api/v1/scheduler/rebalance/{id}/moves", tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance or plan"), PageQuery),
    responses((status = 200, description = "One page of the jobs that the rebalance moves", body = MoveList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_rebalance_moves(
    call: Call,
    PathId(id): PathId,
    Paged(request): Paged<MovePosition>,
) -> Answer<MoveList> {
    let from = request.after.map_or(u64::from(request.offset), |position| position.0);
    let found = call.balancing.moves(call.scope(), read_id(&id)?, from, request.limit).await?;
    let page = Page {
        items: found.moves,
        total: found.total,
        total_is_estimate: false,
        next: found.next.map(MovePosition),
    };
    Ok(Json(MoveList::new(&call, &request, page, MoveView::new)))
}
