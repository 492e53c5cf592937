//! `GET /api/v1/scheduler/rebalance/{id}/moves`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::ListedMove;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::PageRequest;
use serde::Serialize;
use utoipa::ToSchema;

use super::read_id;
use crate::auth::Caller;
use crate::page::{MovePlace, PageQuery};
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::state::App;

/// A move of a rebalance.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct MoveView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Next run time before the move.
    #[schema(value_type = String, format = DateTime)]
    pub old_time: Timestamp,
    /// Next run time after the move.
    #[schema(value_type = String, format = DateTime)]
    pub new_time: Timestamp,
    /// True if the job was moved, false if it was skipped, null until the rebalance reaches it.
    pub made: Option<bool>,
}

impl From<ListedMove> for MoveView {
    fn from(shown: ListedMove) -> Self {
        let ListedMove { job, old_at, new_at, made, .. } = shown;
        Self { job_id: job, old_time: old_at, new_time: new_at, made }
    }
}

/// One page of the moves of a rebalance.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct MoveList {
    /// The moves, in the order in which they are made.
    pub moves: Vec<MoveView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// The page size: the `limit` of the request.
    pub limit: u32,
    /// Number of items skipped before this page: the `offset` of the request.
    pub offset: u32,
    /// The `cursor` that fetches the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Lists the moves of a rebalance or plan.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalance/{id}/moves",
    operation_id = "list_rebalance_moves",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance or plan"), PageQuery),
    responses((status = 200, description = "One page of the moves", body = MoveList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_rebalance_moves(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    mut params: Params,
) -> Result<Json<MoveList>, Problem> {
    let PageRequest { limit, offset, after } = PageQuery::take::<MovePlace>(&mut params);
    params.finish()?;
    let from = after.map_or(u64::from(offset), |place| place.0);
    let page = app.balancing.moves(&caller.scope, read_id(&id)?, from, limit).await?;
    Ok(Json(MoveList {
        moves: page.moves.into_iter().map(MoveView::from).collect(),
        total: page.total,
        total_is_estimate: false,
        limit,
        offset,
        next_cursor: app.cursor(page.next.map(MovePlace)),
    }))
}
