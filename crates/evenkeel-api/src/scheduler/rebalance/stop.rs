//! `POST /api/v1/scheduler/rebalance/{id}/stop`

use axum::extract::State;
use axum::{Extension, Json};

use super::read_id;
use super::view::RebalancedView;
use crate::auth::Caller;
use crate::body::NoBody;
use crate::oversight::Deed;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Stops a rebalance that goes on. Jobs that were moved stay where they are now, the others where they
/// were; it can be undone, or gone on with by acting on its id again.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/rebalance/{id}/stop",
    operation_id = "stop_rebalance",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Which rebalance")),
    responses(
        (status = 200, description = "It is stopped", body = RebalancedView),
        (status = 409, description = "It does not go on (`rebalance-state`)"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn stop_rebalance(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    NoBody: NoBody,
) -> Result<(Extension<Deed>, Json<RebalancedView>), Problem> {
    let id = read_id(&id)?;
    app.balancing.stop(&caller.scope, id).await?;
    let view = RebalancedView::from(app.balancing.report(&caller.scope, id).await?);
    let (moved, planned) = (view.rebalance.moved_total, view.rebalance.planned_total);
    let deed = format!("stopped after {moved} of {planned} moves");
    Ok((Extension(Deed(deed)), Json(view)))
}
