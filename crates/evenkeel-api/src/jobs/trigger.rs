//! `POST /api/v1/jobs/{id}/trigger`

use axum::Json;
use axum::http::StatusCode;
use evenkeel_commands::{TriggerResult, read_trigger};
use evenkeel_core::{AttemptId, JobId, RunId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::MaybeJson;
use crate::call::Call;
use crate::params::PathJob;
use crate::problem::Problem;

/// A triggered run. A triggered run starts as soon as a worker is free, but not before
/// `held_until`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct TriggeredView {
    /// Id of the triggered run. The id is null if a paused job without a run has the same
    /// `dedup_key`, so that no run was created.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// Id of the run's first execution.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub execution_id: Option<AttemptId>,
    /// Id of the job that the run belongs to.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Time of the trigger.
    pub scheduled_at: Option<Timestamp>,
    /// End of the blackout that delays the run; null if no blackout delays it.
    pub held_until: Option<Timestamp>,
    /// True if the run already existed, so that no run was created. An existing run may belong to
    /// another job with the same `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

/// Options of a triggered run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerDocument {
    /// Priority of the run and its retries, 0 to 100. The default is the priority of the job.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
}

/// Runs a job now, in addition to its scheduled runs; the schedule stays unchanged.
///
/// Without a body the run has the priority of its job.
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/trigger", tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    request_body(content = inline(Option<TriggerDocument>), example = json!({"priority": 90})),
    responses(
        (status = 202, description = "The run is queued", body = TriggeredView),
        (status = 200, description = "The job has a `dedup_key`, and this run already exists",
         body = TriggeredView),
        (status = 409, description = "A run is active, or the job's state does not allow it"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn trigger_job(
    call: Call,
    PathJob(id): PathJob,
    MaybeJson(document): MaybeJson,
) -> Result<(StatusCode, Json<TriggeredView>), Problem> {
    let priority = read_trigger(document.as_ref())?;
    let triggered = call.jobs.request_run(call.scope(), id, priority, false).await?;
    let (status, job_id, key, deduplicated) = match triggered {
        TriggerResult::New(key) => (StatusCode::ACCEPTED, id, Some(key), None),
        TriggerResult::Existing { job, key } => (StatusCode::OK, job, key, Some(true)),
    };
    // The run is already queued, so a failure to read `held_until` must not fail the request.
    let held_until = match (key, deduplicated) {
        (Some(key), None) => call.jobs.held_until(call.scope(), job_id, key).await.ok().flatten(),
        _ => None,
    };
    let view = TriggeredView {
        run_id: key.map(|key| call.run_ids.run_id(key)),
        execution_id: key.map(|key| call.run_ids.attempt_id(key)),
        job_id,
        scheduled_at: key.map(|key| key.scheduled_at),
        held_until,
        deduplicated,
    };
    Ok((status, Json(view)))
}
