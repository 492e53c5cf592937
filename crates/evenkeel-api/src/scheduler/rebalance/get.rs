//! `GET /api/v1/scheduler/rebalance/{id}`

use axum::Json;

use super::read_id;
use super::view::RebalancedView;
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};

/// Returns a rebalance, or the plan of one, with its progress.
#[utoipa::path(
    get, path = "/api/v1/scheduler/rebalance/{id}", tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance or plan")),
    responses((status = 200, description = "The rebalance", body = RebalancedView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_rebalance(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
) -> Answer<RebalancedView> {
    Ok(Json(RebalancedView::new(call.balancing.report(call.scope(), read_id(&id)?).await?)))
}
