//! `POST /api/v1/runs/{id}/heartbeat`

use axum::extract::State;
use axum::http::StatusCode;

use super::AttemptCaller;
use crate::body::NoBody;
use crate::params::NoParams;
use crate::problem::Problem;
use crate::state::App;

/// Says that the work goes on, so that the job's time-out begins anew.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/heartbeat",
    operation_id = "heartbeat_run",
    tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "The id of the execution")),
    responses(
        (status = 204, description = "It was heard"),
        (status = 409, description = "It has ended, or was taken over: stop working on it"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn heartbeat(
    State(app): State<App>,
    caller: AttemptCaller,
    _: NoParams,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    app.callbacks.heartbeat(caller.id, &caller.token).await?;
    Ok(StatusCode::NO_CONTENT)
}
