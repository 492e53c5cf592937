//! `POST /api/v1/jobs/{id}/trigger`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_commands::{Accepted, Asked, read_trigger};
use evenkeel_core::{AttemptId, JobId, RunId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::MaybeJson;
use crate::params::{NoParams, PathJob};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// A run that was asked for. It starts as soon as a worker is free, or when `held_until` comes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct TriggeredView {
    /// The run. None if a paused job has the key of this one, and no run to show.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// Its first execution.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub execution_id: Option<AttemptId>,
    /// Its job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// When it was asked for.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub scheduled_at: Option<Timestamp>,
    /// When the blackout ends that holds it; null if none does.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub held_until: Option<Timestamp>,
    /// The run was there already, and nothing was begun. It may be of another job, which has the same
    /// `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

/// What a run that is asked for is to be like.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerDocument {
    /// Its priority, and its retries'; the job's if it is left out.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
}

/// Runs a job now, beside its schedule, whose rhythm this does not disturb. Without a body the run has
/// its job's priority.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/trigger",
    operation_id = "trigger_job",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    request_body(content = inline(Option<TriggerDocument>), example = json!({"priority": 90})),
    responses(
        (status = 202, description = "It will run", body = TriggeredView),
        (status = 200, description = "The job has a `dedup_key`, and this run is there already",
         body = TriggeredView),
        (status = 409, description = "It is busy, or its state does not allow it"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn trigger(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
    MaybeJson(document): MaybeJson,
) -> Result<(StatusCode, Json<TriggeredView>), Problem> {
    let priority = read_trigger(document.as_ref())
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    let asked = app.jobs.trigger_or_find(&caller.scope, id, priority).await?;
    let (status, job_id, key, deduplicated) = match asked {
        Asked::New(Accepted { job, key }) => (StatusCode::ACCEPTED, job, Some(key), None),
        Asked::There { job, key } => (StatusCode::OK, job, key, Some(true)),
    };
    // It is done, whatever becomes of this.
    let held_until = match (key, deduplicated) {
        (Some(key), None) => app.jobs.held_until(&caller.scope, job_id, key).await.ok().flatten(),
        _ => None,
    };
    let view = TriggeredView {
        run_id: key.map(|key| app.run_ids.run_id(key)),
        execution_id: key.map(|key| app.run_ids.attempt_id(key)),
        job_id,
        scheduled_at: key.map(|key| key.scheduled_at),
        held_until,
        deduplicated,
    };
    Ok((status, Json(view)))
}
