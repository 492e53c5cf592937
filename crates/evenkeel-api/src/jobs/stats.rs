//! `GET /api/v1/jobs/{id}/stats`

use axum::Json;
use evenkeel_core::Timestamp;
use evenkeel_store::Job;
use serde::Serialize;
use utoipa::ToSchema;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathJob};

/// Statistics over the lifetime of a job.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobStats {
    /// Number of started executions, including retries.
    #[schema(example = 100)]
    pub total_executions: u64,
    /// Number of successful executions.
    #[schema(example = 95)]
    pub successful_runs: u64,
    /// Number of executions that failed or timed out.
    #[schema(example = 5)]
    pub failed_runs: u64,
    /// Moving average of the duration of successful executions, in milliseconds.
    #[schema(example = 145_000)]
    pub average_duration_ms: Option<u64>,
    /// Time when the last execution started.
    pub last_execution_at: Option<Timestamp>,
    /// Time when the last successful execution finished.
    pub last_success_at: Option<Timestamp>,
    /// Next scheduled time of the job.
    pub next_scheduled_at: Option<Timestamp>,
    /// Share of successful executions among executions that succeeded, failed or timed out, 0 to 1;
    /// null if there are none.
    #[schema(example = 0.95)]
    pub success_rate: Option<f64>,
    /// Number of failed executions since the last successful execution.
    #[schema(example = 0)]
    pub consecutive_failures: u32,
}

impl From<&Job> for JobStats {
    fn from(job: &Job) -> Self {
        Self {
            total_executions: job.executions,
            successful_runs: job.succeeded_runs,
            failed_runs: job.failed_runs,
            average_duration_ms: job
                .history
                .average_good_duration
                .map(|average| average.as_micros() / 1_000),
            last_execution_at: job.history.last_start_at,
            last_success_at: job.history.last_good_end_at,
            next_scheduled_at: job.next_at,
            success_rate: rate(job.succeeded_runs, job.failed_runs),
            consecutive_failures: job.history.consecutive_failures,
        }
    }
}

/// Returns the share of successful executions; `None` if there are no executions.
pub(crate) fn rate(succeeded: u64, failed: u64) -> Option<f64> {
    let all = succeeded + failed;
    (all > 0).then(|| succeeded as f64 / all as f64)
}

/// Statistics over the lifetime of a job.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/stats",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "The statistics", body = JobStats)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_job_stats(
    call: Call,
    PathJob(id): PathJob,
    _: NoParams,
) -> Answer<JobStats> {
    let job = call.jobs.get(call.scope(), id).await?;
    Ok(Json(JobStats::from(&job)))
}
