//! An execution as people see it.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::run::AttemptStatus;
use evenkeel_core::{
    AttemptId, AttemptNo, JobId, LogStream, Origin, RunId, RunIds, Span, Timestamp,
};
use evenkeel_store::Attempt;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Times that did not run, as one record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SkippedView {
    /// The first of them.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// The last of them.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// How many there are.
    pub count: u64,
    /// Why they did not run. `end_not_stored`: the store held no end of an earlier run, whose node could
    /// not store it or was lost.
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

/// How far an execution has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ProgressView {
    /// So much is done.
    pub done: Option<u64>,
    /// So much there is to do, as far as is known.
    pub total: Option<u64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// One try of a run, or a record of times that did not run.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionView {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: AttemptId,
    /// The id of its run, the same for all tries.
    #[schema(value_type = uuid::Uuid)]
    pub run_id: RunId,
    /// Its job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Which one of the job's life it was, counted from 1.
    pub execution_number: Option<u64>,
    /// `pending`, `running`, `completed`, `failed`, `cancelled`, `timed_out`, `skipped` or
    /// `partly_failed`.
    #[schema(value_type = String)]
    pub status: AttemptStatus,
    /// The time it is for.
    #[schema(value_type = String, format = DateTime)]
    pub scheduled_at: Timestamp,
    /// Why it exists: `schedule`, `trigger`, `backfill` or `redrive`.
    #[schema(value_type = String)]
    pub origin: Origin,
    /// When it started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How long after its time it started. A retry is not late, so it has none.
    pub lateness_ms: Option<u64>,
    /// Which try it is, counted from 0.
    pub retry_attempt: u16,
    /// Which try it is, counted from 1.
    pub attempt: u16,
    /// Raised whenever it changed hands.
    pub fence: u32,
    /// How many workers it has lost.
    pub crashes: u16,
    /// The node that has or had it.
    pub node: Option<String>,
    /// Items it found.
    pub items_crawled: Option<i64>,
    /// Items it kept.
    pub items_indexed: Option<i64>,
    /// What went wrong.
    pub error_message: Option<String>,
    /// Where it went wrong; no executor tells yet.
    pub stack_trace: Option<String>,
    /// What it has printed to standard output, or the answer to its call. `/logs` has both streams,
    /// line by line. Of a long log its beginning and its end are kept; lists show its beginning.
    pub output: Option<String>,
    /// How far it has come, while it runs and if it says so. Lists leave it out.
    pub progress: Option<ProgressView>,
    /// CPU time it took.
    pub cpu_time_ms: Option<u64>,
    /// The most memory it had, rounded up.
    pub memory_peak_mb: Option<i64>,
    /// Its priority, while it waits: its own, or its job's. Lists leave it out.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// What its waiting has made of that. Lists leave it out.
    #[schema(maximum = 100)]
    pub effective_priority: Option<u8>,
    /// The times it stands for, if they were skipped.
    pub skipped: Option<SkippedView>,
    /// Whatever else is kept with it.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

impl ExecutionView {
    pub(crate) fn new(run: Attempt, ids: &RunIds) -> Self {
        let printed = run.printed().map(|log| log.text(Some(LogStream::Stdout)));
        let output = printed.filter(|text| !text.is_empty());
        let is_told = run.progress.is_some();
        let progress = run.progress.unwrap_or_default();
        let is_first_try = run.key.attempt == AttemptNo::FIRST;
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
            lateness_ms: lateness.filter(|_| is_first_try).map(Span::as_millis),
            retry_attempt: run.key.attempt.0,
            attempt: run.key.attempt.from_one(),
            fence: run.fence.0,
            crashes: run.crashes,
            node: run.node.map(|(_, name)| name),
            items_crawled: run.results.items_crawled.or(progress.items_crawled),
            items_indexed: run.results.items_indexed.or(progress.items_indexed),
            error_message: run.results.error,
            stack_trace: None,
            output,
            progress: is_told.then_some(ProgressView {
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
