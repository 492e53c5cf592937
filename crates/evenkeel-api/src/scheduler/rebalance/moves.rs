//! `GET /api/v1/scheduler/rebalance/{id}/moves`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::MoveShown;
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
    /// Which job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Its next time before.
    #[schema(value_type = String, format = DateTime)]
    pub old_time: Timestamp,
    /// And with the move.
    #[schema(value_type = String, format = DateTime)]
    pub new_time: Timestamp,
    /// Was it made? Null until the rebalance comes to it.
    pub made: Option<bool>,
}

impl From<MoveShown> for MoveView {
    fn from(shown: MoveShown) -> Self {
        let MoveShown { job, old_at, new_at, made, .. } = shown;
        Self { job_id: job, old_time: old_at, new_time: new_at, made }
    }
}

/// A part of the moves of a rebalance.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct MoveList {
    /// What is on it, in the order in which they are made.
    pub moves: Vec<MoveView>,
    /// How many there are.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// All moves of a rebalance or a plan, a page at a time.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalance/{id}/moves",
    operation_id = "list_rebalance_moves",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Which rebalance or plan"), PageQuery),
    responses((status = 200, description = "A part of the moves", body = MoveList)),
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
