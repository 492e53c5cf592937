//! The view of a dead letter.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::DeadLetter;
use serde::Serialize;
use utoipa::ToSchema;

/// A dead letter: a run that failed and will not be retried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeadLetterView {
    /// Id of the run, which is also the id of the dead letter.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// Id of the run's last execution.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: AttemptId,
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// Name of the job.
    pub job_name: Option<String>,
    /// Scheduled time of the run.
    pub scheduled_at: Timestamp,
    /// Number of attempts that the run had.
    #[schema(example = 4)]
    pub attempts: u16,
    /// Time when the last execution of the run finished.
    pub died_at: Timestamp,
    /// Why the run is not retried: `retries_exhausted`, `not_retryable` (the executor reported that
    /// a retry is useless) or `worker_lost`.
    #[schema(value_type = String, example = "retries_exhausted")]
    pub reason: DeathReason,
    /// Status of the run's last execution: `failed` or `timed_out`.
    #[schema(value_type = String, example = "failed")]
    pub status: AttemptStatus,
    /// Error message of the run's last execution, at most 4,096 characters.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    pub error_message: Option<String>,
    /// Time when the dead letter was redriven; null if it was not redriven.
    pub redriven_at: Option<Timestamp>,
    /// Id of the new run that the redrive created; null if the dead letter was not redriven.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub redriven_run_id: Option<RunId>,
}

impl DeadLetterView {
    pub(crate) fn new(letter: DeadLetter, ids: &RunIds) -> Self {
        let (redriven_at, redriven_run_id) =
            letter.redriven.map(|(at, run)| (at, ids.run_id(run))).unzip();
        Self {
            id: ids.run_id(letter.key),
            execution_id: ids.attempt_id(letter.key),
            job_id: letter.job,
            job_name: letter.job_name,
            scheduled_at: letter.key.scheduled_at,
            attempts: letter.key.attempt.from_one(),
            died_at: letter.died_at,
            reason: letter.reason,
            status: letter.outcome.into(),
            error_message: letter.error,
            redriven_at,
            redriven_run_id,
        }
    }
}
