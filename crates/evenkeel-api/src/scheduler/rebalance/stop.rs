//! `POST /api/v1/scheduler/rebalance/{id}/stop`

use axum::{Extension, Json};

use super::read_id;
use super::view::RebalancedView;
use crate::body::NoBody;
use crate::call::Call;
use crate::oversight::AuditSummary;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// Stops a running rebalance.
///
/// Jobs that were already moved keep their new start times. A stopped rebalance can be undone, or
/// resumed by starting it again with its id as `plan_id`.
#[utoipa::path(
    post, path = "/api/v1/scheduler/rebalance/{id}/stop", tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance")),
    responses(
        (status = 200, description = "The stopped rebalance", body = RebalancedView),
        (status = 409, description = "The rebalance is not running (`rebalance-state`)"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn stop_rebalance(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    NoBody: NoBody,
) -> Result<(Extension<AuditSummary>, Json<RebalancedView>), Problem> {
    let id = read_id(&id)?;
    call.balancing.stop(call.scope(), id).await?;
    let view = RebalancedView::new(call.balancing.report(call.scope(), id).await?);
    let (moved, planned) = (view.rebalance.moved_total, view.rebalance.planned_total);
    let summary = format!("stopped after {moved} of {planned} moves");
    Ok((Extension(AuditSummary(summary)), Json(view)))
}
