//! `POST /api/v1/scheduler/rebalance/{id}/undo`

use axum::extract::State;
use utoipa::ToSchema;

use super::act::{Begun, begun, wait_until};
use super::read_id;
use super::view::RebalancedView;
use crate::auth::Caller;
use crate::body::MaybeJson;
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// How an undo is answered.
#[derive(Clone, PartialEq, Debug, serde::Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoDocument {
    /// Answer when it is over, or after some 20 seconds with 202; else at once.
    #[schema(default = true)]
    pub wait: Option<bool>,
}

/// Takes a rebalance back, for 24 hours after its end: each job that still is on the rhythm it was
/// given goes back to the one it had. What somebody has changed since stays. The answer is about the
/// rebalance that does this, which has an id of its own.
#[utoipa::path(
    post,
    path = "/api/v1/scheduler/rebalance/{id}/undo",
    operation_id = "undo_rebalance",
    tag = "balance",
    params(("id" = uuid::Uuid, Path, description = "Which rebalance")),
    request_body(content = inline(Option<UndoDocument>), example = json!({"wait": true})),
    responses(
        (status = 200, description = "It is taken back", body = RebalancedView),
        (status = 202, description = "It is being taken back", body = RebalancedView),
        (status = 409, description = "Another one goes on (`rebalance-under-way`), or it can't be \
         taken back (`rebalance-state`): it was already, it moved nothing, or it is too long ago"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn undo_rebalance(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    MaybeJson(document): MaybeJson,
) -> Result<Begun, Problem> {
    let wait = evenkeel_commands::read_undo(document.as_ref())
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    let until = wait_until(&app);
    let running = app.balancing.undo(&caller.scope, read_id(&id)?, &caller.subject).await?;
    begun(&app, &caller, running, wait.then_some(until)).await
}
