//! An event as people see it.

use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::Event;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Something that has happened: the `data` of a server-sent event.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct EventView {
    /// `job.created`, `job.updated`, `job.paused`, `job.resumed`, `job.cancelled`, `job.deleted`,
    /// `job.condition`, `run.requested`, `run.started`, `run.ended`, `run.exhausted`, `run.dead`…
    pub kind: &'static str,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The job it is about.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub job_id: Option<JobId>,
    /// The name of that job when the event was written down, if it had one.
    pub job_name: Option<String>,
    /// The run it is about.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// The execution it is about.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub execution_id: Option<AttemptId>,
    /// More about it. `run.started`: `node`, `scheduled_at`, `retry_attempt`. `run.ended`: `status`,
    /// `duration_ms`, and if there are any `error_message`, `items_crawled`, `items_indexed`,
    /// `retry_at`. `run.exhausted`: `status`, `attempts`, `error_message`. `job.condition`:
    /// `condition`, `before`, `reason`.
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
            // It was made by us, as an object.
            data: serde_json::from_str(&event.data).unwrap_or_default(),
        }
    }
}
