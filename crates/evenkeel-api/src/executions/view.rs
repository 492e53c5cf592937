//! The view of an execution.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{
    AttemptId, AttemptNo, JobId, LogStream, Origin, Progress, RunId, RunIds, Span, Timestamp,
};
use evenkeel_store::Attempt;
use serde_json::{Map, Value};

use crate::view::view;

view! {
    /// Several scheduled runs of a job that were skipped, summarized in one execution.
    SkippedView::new(skipped: SkippedTimes) {}

    /// Scheduled time of the first skipped run.
    from: Timestamp = skipped.from,
    /// Scheduled time of the last skipped run.
    to: Timestamp = skipped.to,
    /// Number of skipped runs.
    count: u64 = skipped.count,
    /// Why the runs were skipped. `end_not_stored` means that the outcome of an earlier run is
    /// missing, because its node was lost or could not write to the store.
    #[schema(
        value_type = String,
        pattern = "^(misfire|overlap|retry_pending|blackout|end_not_stored)$"
    )]
    reason: &'static str = skipped.reason.as_str(),
}

view! {
    /// Progress of an execution, as reported by its executor.
    ProgressView::new(progress: Progress) {}

    /// Number of units of work that are done.
    done: Option<u64> = progress.done,
    /// Total number of units of work; null if unknown.
    total: Option<u64> = progress.total,
    /// Short text about what the execution is doing now.
    message: Option<String> = progress.message,
}

view! {
    /// One attempt of a run, or a record of skipped runs.
    ExecutionView::new(run: Attempt, ids: &RunIds) {
        let printed = run.printed().map(|log| log.text(Some(LogStream::Stdout)));
        let output = printed.filter(|text| !text.is_empty());
        let is_reported = run.progress.is_some();
        let progress = run.progress.unwrap_or_default();
        let is_first_attempt = run.key.attempt == AttemptNo::FIRST;
        let lateness = run.started_at.map(|start| start.since(run.key.scheduled_at));
        let duration = run.started_at.zip(run.finished_at).map(|(start, end)| end.since(start));
    }

    /// Id of the execution.
    id: AttemptId as uuid::Uuid = ids.attempt_id(run.key),
    /// Id of the run, which all its attempts share.
    run_id: RunId as uuid::Uuid = ids.run_id(run.key),
    /// Id of the job.
    job_id: JobId as uuid::Uuid = run.job,
    /// Number of the execution within its job, counted from 1.
    execution_number: Option<u64> = run.number,
    /// `pending`, `running`, `completed`, `failed`, `cancelled`, `timed_out`, `skipped` or
    /// `partly_failed`.
    status: AttemptStatus as String = run.status,
    /// Scheduled time of the run.
    scheduled_at: Timestamp = run.key.scheduled_at,
    /// What created the run: `schedule`, `trigger`, `backfill` or `redrive`.
    origin: Origin as String = run.key.sequence.origin(),
    /// Time when the execution started; null while it waits.
    started_at: Option<Timestamp> = run.started_at,
    /// Time when the execution finished; null while it waits or runs.
    completed_at: Option<Timestamp> = run.finished_at,
    /// Duration of the execution in milliseconds.
    duration_ms: Option<u64> = duration.map(Span::as_millis),
    /// Delay between `scheduled_at` and the start of the execution, in milliseconds. `lateness_ms`
    /// is null for retries.
    lateness_ms: Option<u64> = lateness.filter(|_| is_first_attempt).map(Span::as_millis),
    /// Number of the attempt within its run, counted from 0.
    retry_attempt: u16 = run.key.attempt.0,
    /// Number of the attempt within its run, counted from 1.
    attempt: u16 = run.key.attempt.from_one(),
    /// Fencing token, which increases each time another worker takes over the attempt.
    fence: u32 = run.fence.0,
    /// Number of times that the worker of this attempt was lost.
    crashes: u16 = run.crashes,
    /// Name of the node that runs the execution or ran it.
    node: Option<String> = run.node.map(|(_, name)| name),
    /// Number of items that the execution found.
    items_crawled: Option<i64> = run.results.items_crawled.or(progress.items_processed),
    /// Number of items that the execution stored.
    items_indexed: Option<i64> = run.results.items_indexed.or(progress.items_saved),
    /// Error message.
    error_message: Option<String> = run.results.error,
    /// Always null, because no executor reports stack traces.
    stack_trace: Option<String> = None,
    /// Standard output of the program, or the response body of the HTTP call. `GET
    /// /api/v1/executions/{id}/logs` returns standard output and standard error line by line. Of a
    /// long output, the beginning and the end are kept; lists show only the beginning.
    output: Option<String> = output,
    /// Progress of a running execution, if its executor reports progress. Omitted in lists.
    progress: Option<ProgressView> = is_reported.then(|| ProgressView::new(progress)),
    /// CPU time used, in milliseconds.
    cpu_time_ms: Option<u64> = run.results.cpu_time.map(Span::as_millis),
    /// Peak memory in MiB, rounded up.
    memory_peak_mb: Option<i64> =
        run.results.memory_peak_kb.map(|kb| kb.saturating_add(1023) / 1024),
    /// Priority of a queued execution, from 0 to 100: the priority that was set for its run, or
    /// else the priority of its job. Omitted in lists.
    #[schema(maximum = 100)]
    priority: Option<u8> = None,
    /// Priority of a queued execution, including the increase for its waiting time. Omitted in
    /// lists.
    #[schema(maximum = 100)]
    effective_priority: Option<u8> = None,
    /// The skipped runs, if `status` is `skipped`.
    skipped: Option<SkippedView> = run.skipped.map(SkippedView::new),
    /// Additional data as a JSON object.
    metadata: Map<String, Value> as Object = Map::new(),
}
