//! The view of an event.

use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::Event;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// An event: the `data` of a server-sent event.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct EventView {
    /// Kind of the event: `job.created`, `job.updated`, `job.paused`, `job.resumed`,
    /// `job.cancelled`, `job.deleted`, `job.condition`, `run.requested`, `run.started`,
    /// `run.ended`, `run.exhausted`, `run.dead`…
    pub kind: &'static str,
    /// Time of the event.
    pub at: Timestamp,
    /// Id of the job; null if the event is not about a job.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub job_id: Option<JobId>,
    /// Name of the job when the event happened; null if the job had no name.
    pub job_name: Option<String>,
    /// Id of the run; null if the event is not about a run.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// Id of the execution; null if the event is not about an execution.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub execution_id: Option<AttemptId>,
    /// Further fields, which depend on the kind of the event. `run.started`: `node`,
    /// `scheduled_at`, `retry_attempt`. `run.ended`: `status`, `duration_ms`, and if present
    /// `error_message`, `items_crawled`, `items_indexed`, `retry_at`. `run.exhausted`: `status`,
    /// `attempts`, `error_message`. `job.condition`: `condition`, `before`, `reason`.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
}

impl EventView {
    pub(crate) fn new(event: Event, ids: &RunIds) -> Self {
        Self {
            kind: event.kind.as_str(),
            at: event.at,
            job_id: event.job,
            job_name: event.job_name,
            run_id: event.run.map(|key| ids.run_id(key)),
            execution_id: event.run.map(|key| ids.attempt_id(key)),
            // The server stored `data` as a JSON object, so parsing it does not fail.
            data: serde_json::from_str(&event.data).unwrap_or_default(),
        }
    }
}
