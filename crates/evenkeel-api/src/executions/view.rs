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

/// Scheduled times that were skipped, as one record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SkippedView {
    /// First skipped time.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// Last skipped time.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// Number of skipped times.
    pub count: u64,
    /// Why they were skipped. `end_not_stored`: the outcome of an earlier run was missing in the
    /// store, because its node could not write it or was lost.
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
    /// Units of work done.
    pub done: Option<u64>,
    /// Units of work in total, as far as known.
    pub total: Option<u64>,
    /// What the execution is doing.
    pub message: Option<String>,
}

/// One attempt of a run, or a record of skipped times.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionView {
    /// Id of the execution.
    #[schema(value_type = uuid::Uuid)]
    pub id: AttemptId,
    /// Id of the run, shared by all its attempts.
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
    #[schema(value_type = String, format = DateTime)]
    pub scheduled_at: Timestamp,
    /// What created the run: `schedule`, `trigger`, `backfill` or `redrive`.
    #[schema(value_type = String)]
    pub origin: Origin,
    /// Start time; null while it waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// End time; null until it has ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Delay of the start after `scheduled_at`, in milliseconds. Null for retries.
    pub lateness_ms: Option<u64>,
    /// Number of the attempt, counted from 0.
    pub retry_attempt: u16,
    /// Number of the attempt, counted from 1.
    pub attempt: u16,
    /// Fencing token; increases each time another worker takes over the attempt.
    pub fence: u32,
    /// How often its worker was lost.
    pub crashes: u16,
    /// Name of the node that runs or ran it.
    pub node: Option<String>,
    /// Items found.
    pub items_crawled: Option<i64>,
    /// Items stored.
    pub items_indexed: Option<i64>,
    /// Error message.
    pub error_message: Option<String>,
    /// Always null: no executor reports it yet.
    pub stack_trace: Option<String>,
    /// Standard output of the program, or the body of the HTTP answer. `/logs` has both streams,
    /// line by line. Of a long log the beginning and the end are kept; lists show the beginning.
    pub output: Option<String>,
    /// Progress while it runs, if the executor reports it. Omitted in lists.
    pub progress: Option<ProgressView>,
    /// CPU time used, in milliseconds.
    pub cpu_time_ms: Option<u64>,
    /// Peak memory in MiB, rounded up.
    pub memory_peak_mb: Option<i64>,
    /// Priority while it is queued: its own, or its job's. Omitted in lists.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// Priority including the increase for waiting time. Omitted in lists.
    #[schema(maximum = 100)]
    pub effective_priority: Option<u8>,
    /// The skipped times, if `status` is `skipped`.
    pub skipped: Option<SkippedView>,
    /// Additional data.
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
