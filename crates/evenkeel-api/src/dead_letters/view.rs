//! The view of a dead letter.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::DeadLetter;

use crate::view::view;

view! {
    /// A dead letter: a run that failed and will not be retried.
    DeadLetterView::new(letter: DeadLetter, ids: &RunIds) {
        let (redriven_at, redriven_run_id) =
            letter.redriven.map(|(at, run)| (at, ids.run_id(run))).unzip();
    }

    /// Id of the run, which is also the id of the dead letter.
    id: RunId as uuid::Uuid = ids.run_id(letter.key),
    /// Id of the run's last execution.
    execution_id: AttemptId as uuid::Uuid = ids.attempt_id(letter.key),
    /// Id of the job.
    job_id: JobId as uuid::Uuid = letter.job,
    /// Name of the job.
    job_name: Option<String> = letter.job_name,
    /// Scheduled time of the run.
    scheduled_at: Timestamp = letter.key.scheduled_at,
    /// Number of attempts that the run had.
    #[schema(example = 4)]
    attempts: u16 = letter.key.attempt.from_one(),
    /// Time when the last execution of the run finished.
    died_at: Timestamp = letter.died_at,
    /// Why the run is not retried: `retries_exhausted`, `not_retryable` (the executor reported that
    /// a retry is useless) or `worker_lost`.
    #[schema(value_type = String, example = "retries_exhausted")]
    reason: DeathReason = letter.reason,
    /// Status of the run's last execution: `failed` or `timed_out`.
    #[schema(value_type = String, example = "failed")]
    status: AttemptStatus = letter.outcome.into(),
    /// Error message of the run's last execution, at most 4,096 characters.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    error_message: Option<String> = letter.error,
    /// Time when the dead letter was redriven; null if it was not redriven.
    redriven_at: Option<Timestamp> = redriven_at,
    /// Id of the new run that the redrive created; null if the dead letter was not redriven.
    redriven_run_id: Option<RunId> as Option<uuid::Uuid> = redriven_run_id,
}
