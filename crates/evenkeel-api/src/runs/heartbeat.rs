//! `POST /api/v1/runs/{id}/heartbeat`

use axum::extract::State;
use axum::http::StatusCode;

use super::AttemptCaller;
use crate::body::NoBody;
use crate::params::NoParams;
use crate::problem::Problem;
use crate::state::App;

/// Reports that an attempt is still running, which restarts the job's time-out.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/heartbeat", tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "Id of the execution")),
    responses(
        (status = 204, description = "The heartbeat was recorded"),
        (status = 409, description = "The attempt has finished or another worker took it over: stop working on it"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn heartbeat_run(
    State(app): State<App>,
    caller: AttemptCaller,
    _: NoParams,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    app.callbacks.heartbeat(caller.id, &caller.token).await?;
    Ok(StatusCode::NO_CONTENT)
}
