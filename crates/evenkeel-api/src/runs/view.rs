//! The view of a run with its attempts.

use evenkeel_commands::Run;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptId, JobId, Origin, RunId, RunIds, Span, Timestamp};
use evenkeel_store::{RecentRun, RunAttempt};

use crate::executions::SkippedView;
use crate::view::view;

view! {
    /// One attempt of a run. `GET /api/v1/executions/{id}` also shows its output and its progress.
    RunAttemptView::new(one: RunAttempt, ids: &RunIds) {
        let RunAttempt { attempt, due } = one;
        let times = attempt.started_at.zip(attempt.finished_at);
    }

    /// Id of the execution.
    id: AttemptId as uuid::Uuid = ids.attempt_id(attempt.key),
    /// Number of the attempt within its run, counted from 1.
    attempt: u16 = attempt.key.attempt.from_one(),
    /// `pending`, `running`, `completed`, `failed`, `cancelled`, `timed_out`, `skipped`,
    /// `partly_failed` or `superseded`.
    status: AttemptStatus as String = attempt.status,
    /// Name of the node that runs the attempt or ran it.
    node: Option<String> = attempt.node.map(|(_, name)| name),
    /// Time for which a retry or trigger waits; null if the attempt does not wait for a time.
    due_at: Option<Timestamp> = due,
    /// Time when the attempt started; null while it waits.
    started_at: Option<Timestamp> = attempt.started_at,
    /// Time when the attempt finished; null while it waits or runs.
    finished_at: Option<Timestamp> = attempt.finished_at,
    /// Duration of the attempt in milliseconds.
    duration_ms: Option<u64> = times.map(|(start, end)| end.since(start).as_millis()),
    /// Number of times that the worker of this attempt was lost.
    crashes: u16 = attempt.crashes,
    /// Error message, cut to 4,096 characters.
    error_message: Option<String> = attempt.results.error,
}

view! {
    /// One scheduled time, trigger, redrive or backfill of a job, with its attempts; or a record of
    /// skipped times.
    RunView::new(run: Run, ids: &RunIds) {
        let (started_at, finished_at) = (run.started_at(), run.finished_at());
        let duration = started_at.zip(finished_at).map(|(start, end)| end.since(start));
        let (status, attempt_count, lateness) = (run.status(), run.attempt_count(), run.lateness());
        let (next_attempt_at, skipped) = (run.latest.due, run.latest.attempt.skipped);
        let error = run.latest.attempt.results.error.clone();
        let attempts = run.earlier.into_iter().chain([run.latest]);
    }

    /// Id of the run.
    id: RunId as uuid::Uuid = ids.run_id(run.key),
    /// Id of the job.
    job_id: JobId as uuid::Uuid = run.job,
    /// Name of the job; null if the job has no name or was deleted.
    job_name: Option<String> = run.job_name,
    /// Status of the newest attempt, which is the outcome of the run once it has ended: `pending`,
    /// `running`, `completed`, `failed`, `cancelled`, `timed_out`, `skipped`, `partly_failed` or
    /// `superseded`. A run whose retry waits is `pending`.
    status: AttemptStatus as String = status,
    /// Scheduled time of the run.
    scheduled_at: Timestamp = run.key.scheduled_at,
    /// What created the run: `schedule`, `trigger`, `backfill` or `redrive`.
    origin: Origin as String = run.key.sequence.origin(),
    /// Time when the first attempt started.
    started_at: Option<Timestamp> = started_at,
    /// Time when the last attempt finished; null until the run has ended.
    finished_at: Option<Timestamp> = finished_at,
    /// Time from the start of the first attempt to the end of the last, in milliseconds.
    duration_ms: Option<u64> = duration.map(Span::as_millis),
    /// Delay between `scheduled_at` and the start of the first attempt, in milliseconds.
    lateness_ms: Option<u64> = lateness.map(Span::as_millis),
    /// Time for which the next attempt waits, if it waits for a time.
    next_attempt_at: Option<Timestamp> = next_attempt_at,
    /// Error message of the newest attempt, cut to 4,096 characters.
    error_message: Option<String> = error,
    /// The skipped times, if `status` is `skipped`.
    skipped: Option<SkippedView> = skipped.map(SkippedView::new),
    /// Number of attempts so far, including the attempt that waits.
    attempt_count: u16 = attempt_count,
    /// The attempts, oldest first. Of a run with more than 10 attempts, lists show the first attempt
    /// and the 10 newest.
    attempts: Vec<RunAttemptView> =
        attempts.map(|attempt| RunAttemptView::new(attempt, ids)).collect(),
}

view! {
    /// One of the newest runs of a job in a list of jobs.
    RecentRunView::new(run: RecentRun, ids: &RunIds) {
        let times = run.started_at.zip(run.finished_at);
        let duration = times.map(|(start, end)| end.since(start));
    }

    /// Id of the run.
    id: RunId as uuid::Uuid = ids.run_id(run.key),
    /// Status of the newest attempt, as in `GET /api/v1/runs`.
    status: AttemptStatus as String = run.status,
    /// Scheduled time of the run.
    scheduled_at: Timestamp = run.key.scheduled_at,
    /// Time from the start of the first attempt to the end of the last, in milliseconds; null until
    /// the run has ended.
    duration_ms: Option<u64> = duration.map(Span::as_millis),
    /// What created the run: `schedule`, `trigger`, `backfill` or `redrive`.
    origin: Origin as String = run.key.sequence.origin(),
}
