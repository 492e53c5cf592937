//! `POST /api/v1/jobs/{id}/resume`

use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_commands::Ask;

use super::commanded::{Commanded, CommandedView, command};
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// Sets a paused job going again. It gets its next time afresh: what passed meanwhile was not
/// missed.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/resume",
    operation_id = "resume_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Carry it out only if the job still has one of these ETags; * for any"),
    ),
    responses(
        (status = 200, description = "It goes on", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "It is not paused"),
        (status = 412, description = "The job was changed since; the header ETag has its version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Commanded, Problem> {
    command(&app, &caller, id, Ask::Resume, &headers).await
}
