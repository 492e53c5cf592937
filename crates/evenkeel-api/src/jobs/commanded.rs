//! Applies a command such as pause or cancel to one job, and answers with the job.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use evenkeel_commands::ControlCommand;
use evenkeel_core::{AttemptId, JobId, RunId, Timestamp};
use evenkeel_store::CommandEffect;
use serde::Serialize;
use utoipa::ToSchema;

use super::JobView;
use crate::auth::Caller;
use crate::etag::{etag, if_match};
use crate::problem::Problem;
use crate::state::App;

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
    #[schema(value_type = Option<String>, format = DateTime)]
    pub held_until: Option<Timestamp>,
}

pub(super) type Commanded = ([(HeaderName, HeaderValue); 1], Json<CommandedView>);

pub(super) async fn command(
    app: &App,
    caller: &Caller,
    id: JobId,
    command: ControlCommand,
    headers: &HeaderMap,
) -> Result<Commanded, Problem> {
    // The time is read first, because nothing may fail after the command is applied.
    let now = app.jobs.now().await?;
    let done = app.jobs.control(&caller.scope, id, command, if_match(headers).as_deref()).await?;
    let view = view(app, caller, done, now).await?;
    Ok(([(header::ETAG, etag(view.job.generation))], Json(view)))
}

async fn view(
    app: &App,
    caller: &Caller,
    done: CommandEffect,
    now: Timestamp,
) -> Result<CommandedView, Problem> {
    let job = done.job.ok_or(evenkeel_commands::CommandError::NotFound)?;
    let effective = app.jobs.effective_priority(&caller.scope, &job, now).await;
    let effective = effective.unwrap_or(job.definition.priority);
    let held_until = match done.run {
        Some(run) => app.jobs.held_until(&caller.scope, job.id, run).await.ok().flatten(),
        None => None,
    };
    Ok(CommandedView {
        job: JobView::new(job, now, &app.run_ids)
            .waiting_as(effective)
            .for_role(caller.scope.role, app.jobs.executors().catalog()),
        still_running: done.running.into_iter().map(|key| app.run_ids.attempt_id(key)).collect(),
        run_id: done.run.map(|key| app.run_ids.run_id(key)),
        held_until,
    })
}
