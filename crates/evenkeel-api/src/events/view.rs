//! The view of an event.

use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::Event;
use serde_json::{Map, Value};

use crate::view::view;

view! {
    /// An event: the `data` of a server-sent event.
    EventView::new(event: Event, ids: &RunIds) {}

    /// Kind of the event: `job.created`, `job.updated`, `job.paused`, `job.resumed`,
    /// `job.cancelled`, `job.deleted`, `job.condition`, `run.requested`, `run.started`,
    /// `run.ended`, `run.exhausted`, `run.dead`…
    kind: &'static str = event.kind.as_str(),
    /// Time of the event.
    at: Timestamp = event.at,
    /// Id of the job; null if the event is not about a job.
    job_id: Option<JobId> as Option<uuid::Uuid> = event.job,
    /// Name of the job when the event happened; null if the job had no name.
    job_name: Option<String> = event.job_name,
    /// Id of the run; null if the event is not about a run.
    run_id: Option<RunId> as Option<uuid::Uuid> = event.run.map(|key| ids.run_id(key)),
    /// Id of the execution; null if the event is not about an execution.
    execution_id: Option<AttemptId> as Option<uuid::Uuid> =
        event.run.map(|key| ids.attempt_id(key)),
    /// Further fields, which depend on the kind of the event. `run.started`: `node`,
    /// `scheduled_at`, `retry_attempt`. `run.ended`: `status`, `duration_ms`, and if present
    /// `error_message`, `items_crawled`, `items_indexed`, `retry_at`. `run.exhausted`: `status`,
    /// `attempts`, `error_message`. `job.condition`: `condition`, `before`, `reason`.
    // The server stored `data` as a JSON object, so parsing it does not fail.
    data: Map<String, Value> as Object = serde_json::from_str(&event.data).unwrap_or_default(),
}
