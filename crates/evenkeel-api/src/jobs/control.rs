//! `POST /api/v1/jobs/{id}/pause`, `…/resume`, `…/cancel` and `…/retry`

use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_commands::ControlCommand;

use super::commanded::{Commanded, CommandedView, command};
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// Pauses a job: no scheduled runs start until it is resumed.
///
/// Queued runs of the job are withdrawn. Running executions continue until they finish, and are not
/// retried. A paused job can still be triggered.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/pause",
    operation_id = "pause_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has one of these ETags; * allows any version"),
    ),
    responses(
        (status = 200, description = "The job after the command", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "The job is already paused, or will not run again"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
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
    command(&app, &caller, id, ControlCommand::Pause, &headers).await
}

/// Resumes a paused job.
///
/// The next run time is computed from the schedule; runs that were due while the job was paused do
/// not count as missed.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/resume",
    operation_id = "resume_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has one of these ETags; * allows any version"),
    ),
    responses(
        (status = 200, description = "The job after the command", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "The job is not paused"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
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
    command(&app, &caller, id, ControlCommand::Resume, &headers).await
}

/// Cancels a job permanently.
///
/// Queued runs of the job are withdrawn, and its running executions are asked to stop. A cancelled
/// job stays visible until it is deleted.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/cancel",
    operation_id = "cancel_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has one of these ETags; * allows any version"),
    ),
    responses(
        (status = 200, description = "The job after the command", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "The job has already ended"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Commanded, Problem> {
    command(&app, &caller, id, ControlCommand::Cancel, &headers).await
}

/// Repeats the last run of a job now, if that run failed.
///
/// The schedule of the job stays unchanged. A job that stopped because its retries were exhausted
/// becomes active again.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/retry",
    operation_id = "retry_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has one of these ETags; * allows any version"),
    ),
    responses(
        (status = 200, description = "The job after the command", body = CommandedView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "The last run did not fail, or a run is active"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
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
    command(&app, &caller, id, ControlCommand::Retry, &headers).await
}
