//! `POST /api/v1/runs/{id}/heartbeat`

use axum::extract::State;
use axum::http::StatusCode;

use super::AttemptCaller;
use crate::body::NoBody;
use crate::params::Params;
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
        (status = 404, description = "The id is none of an execution", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "It has ended, or was taken over: stop working on it",
         body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A parameter is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn heartbeat(
    State(app): State<App>,
    caller: AttemptCaller,
    params: Params,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    app.callbacks.heartbeat(caller.id, &caller.token).await?;
    Ok(StatusCode::NO_CONTENT)
}
