//! `POST /api/v1/scheduler/rebalance/{id}/undo`

use utoipa::ToSchema;

use super::act::{StartedRebalance, started, wait_until};
use super::read_id;
use super::view::RebalancedView;
use crate::body::MaybeJson;
use crate::call::Call;
use crate::params::PathId;
use crate::problem::Problem;

/// Options of a request that undoes a rebalance.
#[derive(Clone, PartialEq, Debug, serde::Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoDocument {
    /// With `true`, the response is sent when the undo has finished, or with status 202 after about
    /// 20 seconds. With `false`, the response is sent at once.
    #[schema(default = true)]
    pub wait: Option<bool>,
}

/// Undoes a rebalance, up to 24 hours after the rebalance finished.
///
/// A job that still has the start time from the rebalance returns to its former start time; a job
/// that was changed since the rebalance is skipped. The undo is a new rebalance with its own id,
/// which the response describes.
#[utoipa::path(
    post, path = "/api/v1/scheduler/rebalance/{id}/undo", tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Id of the rebalance")),
    request_body(content = inline(Option<UndoDocument>), example = json!({"wait": true})),
    responses(
        (status = 200, description = "The rebalance is undone", body = RebalancedView),
        (status = 202, description = "The rebalance is being undone", body = RebalancedView),
        (status = 409, description = "Another rebalance is running (`rebalance-under-way`), or this one \
         cannot be undone (`rebalance-state`): it was already undone, moved nothing, or ended more \
         than 24 hours ago"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn undo_rebalance(
    call: Call,
    PathId(id): PathId,
    MaybeJson(document): MaybeJson,
) -> Result<StartedRebalance, Problem> {
    let wait = evenkeel_commands::read_undo(document.as_ref())?;
    let until = wait_until(&call);
    let running = call.balancing.undo(call.scope(), read_id(&id)?, &call.caller.subject).await?;
    started(&call, running, wait.then_some(until)).await
}
