//! `POST /api/v1/jobs/{id}/retry`

use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_commands::Ask;

use super::commanded::{Commanded, CommandedView, command};
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// Tries the last run of a job again, now, if that failed. The rhythm is not disturbed; a job that its
/// failures have stopped goes on.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/retry",
    operation_id = "retry_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Carry it out only if the job still has one of these ETags; * for any"),
    ),
    responses(
        (status = 200, description = "It will run", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "Its last run did not fail, or one goes on"),
        (status = 412, description = "The job was changed since; the header ETag has its version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Commanded, Problem> {
    command(&app, &caller, id, Ask::Retry, &headers).await
}
