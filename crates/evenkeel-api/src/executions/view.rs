//! The view of an execution.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{
    AttemptId, AttemptNo, JobId, LogStream, Origin, RunId, RunIds, Span, Timestamp,
};
use evenkeel_store::Attempt;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Several scheduled runs of a job that were skipped, summarized in one execution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SkippedView {
    /// Scheduled time of the first skipped run.
    pub from: Timestamp,
    /// Scheduled time of the last skipped run.
    pub to: Timestamp,
    /// Number of skipped runs.
    pub count: u64,
    /// Why the runs were skipped. `end_not_stored` means that the outcome of an earlier run is
    /// missing, because its node was lost or could not write to the store.
    #[schema(
        value_type = String,
        pattern = "^(misfire|overlap|retry_pending|blackout|end_not_stored)$"
    )]
    pub reason: &'static str,
}

impl From<SkippedTimes> for SkippedView {
    fn from(skipped: SkippedTimes) -> Self {
        let SkippedTimes { from, to, count, reason } = skipped;
        Self { from, to, count, reason: reason.as_str() }
    }
}

/// Progress of an execution, as reported by its executor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ProgressView {
    /// Number of units of work that are done.
    pub done: Option<u64>,
    /// Total number of units of work; null if unknown.
    pub total: Option<u64>,
    /// Short text about what the execution is doing now.
    pub message: Option<String>,
}

/// One attempt of a run, or a record of skipped runs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionView {
    /// Id of the execution.
    #[schema(value_type = uuid::Uuid)]
    pub id: AttemptId,
    /// Id of the run, which all its attempts share.
    #[schema(value_type = uuid::Uuid)]
    pub run_id: RunId,
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Number of the execution within its job, counted from 1.
    pub execution_number: Option<u64>,
    /// `pending`, `running`, `completed`, `failed`, `cancelled`, `timed_out`, `skipped` or
    /// `partly_failed`.
    #[schema(value_type = String)]
    pub status: AttemptStatus,
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// What created the run: `schedule`, `trigger`, `backfill` or `redrive`.
    #[schema(value_type = String)]
    pub origin: Origin,
    /// Time when the execution started; null while it waits.
    pub started_at: Option<Timestamp>,
    /// Time when the execution finished; null while it waits or runs.
    pub completed_at: Option<Timestamp>,
    /// Duration of the execution in milliseconds.
    pub duration_ms: Option<u64>,
    /// Delay between `scheduled_at` and the start of the execution, in milliseconds. `lateness_ms`
    /// is null for retries.
    pub lateness_ms: Option<u64>,
    /// Number of the attempt within its run, counted from 0.
    pub retry_attempt: u16,
    /// Number of the attempt within its run, counted from 1.
    pub attempt: u16,
    /// Fencing token, which increases each time another worker takes over the attempt.
    pub fence: u32,
    /// Number of times that the worker of this attempt was lost.
    pub crashes: u16,
    /// Name of the node that runs the execution or ran it.
    pub node: Option<String>,
    /// Number of items that the execution found.
    pub items_crawled: Option<i64>,
    /// Number of items that the execution stored.
    pub items_indexed: Option<i64>,
    /// Error message.
    pub error_message: Option<String>,
    /// Always null, because no executor reports stack traces.
    pub stack_trace: Option<String>,
    /// Standard output of the program, or the response body of the HTTP call. `GET
    /// /api/v1/executions/{id}/logs` returns standard output and standard error line by line. Of a
    /// long output, the beginning and the end are kept; lists show only the beginning.
    pub output: Option<String>,
    /// Progress of a running execution, if its executor reports progress. Omitted in lists.
    pub progress: Option<ProgressView>,
    /// CPU time used, in milliseconds.
    pub cpu_time_ms: Option<u64>,
    /// Peak memory in MiB, rounded up.
    pub memory_peak_mb: Option<i64>,
    /// Priority of a queued execution, from 0 to 100: set for its run, or else the priority of its
    /// job. Omitted in lists.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// Priority of a queued execution, including the increase for its waiting time. Omitted in
    /// lists.
    #[schema(maximum = 100)]
    pub effective_priority: Option<u8>,
    /// The skipped runs, if `status` is `skipped`.
    pub skipped: Option<SkippedView>,
    /// Additional data as a JSON object.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

impl ExecutionView {
    pub(crate) fn new(run: Attempt, ids: &RunIds) -> Self {
        let printed = run.printed().map(|log| log.text(Some(LogStream::Stdout)));
        let output = printed.filter(|text| !text.is_empty());
        let is_reported = run.progress.is_some();
        let progress = run.progress.unwrap_or_default();
        let is_first_attempt = run.key.attempt == AttemptNo::FIRST;
        let lateness = run.started_at.map(|start| start.since(run.key.scheduled_at));
        let duration = run.started_at.zip(run.finished_at).map(|(start, end)| end.since(start));
        Self {
            id: ids.attempt_id(run.key),
            run_id: ids.run_id(run.key),
            job_id: run.job,
            execution_number: run.number,
            status: run.status,
            scheduled_at: run.key.scheduled_at,
            origin: run.key.sequence.origin(),
            started_at: run.started_at,
            completed_at: run.finished_at,
            duration_ms: duration.map(Span::as_millis),
            lateness_ms: lateness.filter(|_| is_first_attempt).map(Span::as_millis),
            retry_attempt: run.key.attempt.0,
            attempt: run.key.attempt.from_one(),
            fence: run.fence.0,
            crashes: run.crashes,
            node: run.node.map(|(_, name)| name),
            items_crawled: run.results.items_crawled.or(progress.items_processed),
            items_indexed: run.results.items_indexed.or(progress.items_saved),
            error_message: run.results.error,
            stack_trace: None,
            output,
            progress: is_reported.then_some(ProgressView {
                done: progress.done,
                total: progress.total,
                message: progress.message,
            }),
            cpu_time_ms: run.results.cpu_time.map(Span::as_millis),
            memory_peak_mb: run.results.memory_peak_kb.map(|kb| kb.saturating_add(1023) / 1024),
            priority: None,
            effective_priority: None,
            skipped: run.skipped.map(SkippedView::from),
            metadata: Map::new(),
        }
    }
}
