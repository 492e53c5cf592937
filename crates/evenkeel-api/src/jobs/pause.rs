//! `POST /api/v1/jobs/{id}/pause`

use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_commands::Ask;

use super::commanded::{Commanded, CommandedView, command};
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// Stops a job until it is resumed. What waits of it is withdrawn, what runs goes on to its end and
/// is not tried again. It can still be triggered.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/pause",
    operation_id = "pause_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Carry it out only if the job still has one of these ETags; * for any"),
    ),
    responses(
        (status = 200, description = "It is paused", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "It is paused already, or will not run again"),
        (status = 412, description = "The job was changed since; the header ETag has its version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Commanded, Problem> {
    command(&app, &caller, id, Ask::Pause, &headers).await
}
