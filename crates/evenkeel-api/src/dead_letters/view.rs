//! A run that failed for good, as people see it.

use evenkeel_core::on_failure::DeathReason;
use evenkeel_core::run::AttemptStatus;
use evenkeel_core::{AttemptId, JobId, RunId, RunIds, Timestamp};
use evenkeel_store::DeadLetter;
use serde::Serialize;
use utoipa::ToSchema;

/// A run that failed for good.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeadLetterView {
    /// The id of the run, which is that of the letter.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// Its last execution.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: AttemptId,
    /// Its job.
    #[schema(value_type = uuid::Uuid)]
    pub job_id: JobId,
    /// What people call that.
    pub job_name: Option<String>,
    /// The time the run was for.
    #[schema(value_type = String, format = DateTime)]
    pub scheduled_at: Timestamp,
    /// How often it was tried.
    #[schema(example = 4)]
    pub attempts: u16,
    /// When the last execution ended.
    #[schema(value_type = String, format = DateTime)]
    pub died_at: Timestamp,
    /// Why it is not tried again: `retries_exhausted`, `not_retryable` (its body said so) or
    /// `worker_lost`.
    #[schema(value_type = String, example = "retries_exhausted")]
    pub reason: DeathReason,
    /// How the last execution ended: `failed` or `timed_out`.
    #[schema(value_type = String, example = "failed")]
    pub status: AttemptStatus,
    /// What went wrong in it: the first 4096 characters.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    pub error_message: Option<String>,
    /// When it was taken up again.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub redriven_at: Option<Timestamp>,
    /// The run that it became then.
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
