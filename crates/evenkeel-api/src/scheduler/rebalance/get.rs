//! `GET /api/v1/scheduler/rebalance/{id}`

use axum::Json;
use axum::extract::State;

use super::read_id;
use super::view::RebalancedView;
use crate::auth::Caller;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Returns a rebalance, or the plan of one, with its progress.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalance/{id}",
    operation_id = "get_rebalance",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance or plan")),
    responses((status = 200, description = "The rebalance", body = RebalancedView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_rebalance(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
) -> Result<Json<RebalancedView>, Problem> {
    Ok(Json(app.balancing.report(&caller.scope, read_id(&id)?).await?.into()))
}
