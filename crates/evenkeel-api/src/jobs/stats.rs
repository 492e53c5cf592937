//! `GET /api/v1/jobs/{id}/stats`

use axum::Json;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Job;

use crate::call::{Answer, Call};
use crate::params::{NoParams, PathJob};
use crate::view::view;

view! {
    /// Statistics over the lifetime of a job.
    JobStats::new(job: Job) {}

    /// Number of started executions, including retries.
    #[schema(example = 100)]
    total_executions: u64 = job.executions,
    /// Number of successful executions.
    #[schema(example = 95)]
    successful_runs: u64 = job.succeeded_runs,
    /// Number of executions that failed or timed out.
    #[schema(example = 5)]
    failed_runs: u64 = job.failed_runs,
    /// Moving average of the duration of successful executions, in milliseconds.
    #[schema(example = 145_000)]
    average_duration_ms: Option<u64> = job.history.average_good_duration.map(Span::as_millis),
    /// Time when the last execution started.
    last_execution_at: Option<Timestamp> = job.history.last_start_at,
    /// Time when the last successful execution finished.
    last_success_at: Option<Timestamp> = job.history.last_good_end_at,
    /// Next scheduled time of the job.
    next_scheduled_at: Option<Timestamp> = job.next_at,
    /// Share of successful executions among executions that succeeded, failed or timed out, 0 to 1;
    /// null if there are none.
    #[schema(example = 0.95)]
    success_rate: Option<f64> = rate(job.succeeded_runs, job.failed_runs),
    /// Number of failed executions since the last successful execution.
    #[schema(example = 0)]
    consecutive_failures: u32 = job.history.consecutive_failures,
}

/// Returns the share of successful executions; `None` if there are no executions.
pub(crate) fn rate(succeeded: u64, failed: u64) -> Option<f64> {
    let all = succeeded + failed;
    (all > 0).then(|| succeeded as f64 / all as f64)
}

/// Statistics over the lifetime of a job.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/stats", tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "The statistics", body = JobStats)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_job_stats(
    call: Call,
    PathJob(id): PathJob,
    _: NoParams,
) -> Answer<JobStats> {
    Ok(Json(JobStats::new(call.jobs.get(call.scope(), id).await?)))
}
