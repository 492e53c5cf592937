//! `POST /api/v1/jobs/{id}/pause`, `…/resume`, `…/cancel` and `…/retry`

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use evenkeel_commands::{CommandError, ControlCommand};
use evenkeel_core::{AttemptId, JobId, RunId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::JobView;
use crate::body::NoBody;
use crate::call::Call;
use crate::etag::{etag, if_match};
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;

/// A job after a command such as pause or cancel was applied.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct CommandedView {
    #[serde(flatten)]
    pub job: JobView,
    /// Ids of executions that are still running. If the job was cancelled, its running executions
    /// were asked to stop.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub still_running: Vec<AttemptId>,
    /// Id of the run that the command created; only for `retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// End of the blackout that delays the run `run_id`; null if no blackout delays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
}

type Commanded = ([(HeaderName, HeaderValue); 1], Json<CommandedView>);

async fn apply(
    call: Call,
    id: JobId,
    command: ControlCommand,
    headers: &HeaderMap,
) -> Result<Commanded, Problem> {
    // The current time is read before the command, so that a failed read cannot hide an applied
    // command.
    let now = call.store.now().await?;
    let done = call.jobs.control(call.scope(), id, command, if_match(headers).as_deref()).await?;
    let job = done.job.ok_or(CommandError::NotFound)?;
    let effective = call.jobs.effective_priority(call.scope(), &job, now).await;
    let effective = effective.unwrap_or(job.definition.priority);
    let held_until = match done.run {
        Some(run) => call.jobs.held_until(call.scope(), job.id, run).await.ok().flatten(),
        None => None,
    };
    let view = CommandedView {
        job: JobView::new(job, now, &call.run_ids)
            .waiting_as(effective)
            .for_role(call.scope().role, call.jobs.executors().catalog()),
        still_running: done.running.into_iter().map(|key| call.run_ids.attempt_id(key)).collect(),
        run_id: done.run.map(|key| call.run_ids.run_id(key)),
        held_until,
    };
    Ok(([(header::ETAG, etag(view.job.generation))], Json(view)))
}

/// Defines the handler of a command: its name, the command, its path, and why the server may answer
/// 409.
macro_rules! control {
    ($(#[$about:meta])* $handler:ident, $command:ident, $path:tt, $conflict:tt) => {
        $(#[$about])*
        #[utoipa::path(
            post, path = $path, tag = "jobs",
            params(
                ("id" = String, Path, description = "The job's id or name"),
                ("If-Match" = Option<String>, Header,
                 description = "Apply only if the job still has one of these ETags; * allows any version"),
            ),
            responses(
                (status = 200, description = "The job after the command", body = CommandedView,
                 headers(("ETag" = String, description = "Version of the job, for If-Match"))),
                (status = 409, description = $conflict),
                (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
            ),
            extensions(("x-required-role" = json!("operator"))),
        )]
        pub(crate) async fn $handler(
            call: Call,
            PathJob(id): PathJob,
            _: NoParams,
            headers: HeaderMap,
            _: NoBody,
        ) -> Result<Commanded, Problem> {
            apply(call, id, ControlCommand::$command, &headers).await
        }
    };
}

control! {
    /// Pauses a job: no scheduled runs start until it is resumed.
    ///
    /// Pausing a job withdraws its queued runs. Running executions of a paused job continue until
    /// they finish, and are not retried. A paused job can still be triggered.
    pause_job, Pause, "/api/v1/jobs/{id}/pause", "The job is already paused, or will not run again"
}

control! {
    /// Resumes a paused job.
    ///
    /// The next run time is computed from the schedule; runs that were due while the job was paused do
    /// not count as missed.
    resume_job, Resume, "/api/v1/jobs/{id}/resume", "The job is not paused"
}

control! {
    /// Cancels a job permanently.
    ///
    /// Cancelling a job withdraws its queued runs and asks its running executions to stop. A
    /// cancelled job stays visible until it is deleted.
    cancel_job, Cancel, "/api/v1/jobs/{id}/cancel", "The job has already ended"
}

control! {
    /// Repeats the last run of a job now, if that run failed.
    ///
    /// The schedule of the job stays unchanged. A job that stopped because its retries were exhausted
    /// becomes active again.
    retry_job, Retry, "/api/v1/jobs/{id}/retry", "The last run did not fail, or a run is active"
}
