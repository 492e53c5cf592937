//! `GET /api/v1/scheduler/metrics`

use axum::Json;
use evenkeel_commands::TenantStats;
use evenkeel_core::Timestamp;
use evenkeel_store::{JobCounts, RunTotals};

use crate::call::{Answer, Call};
use crate::jobs::stats::rate;
use crate::params::NoParams;
use crate::view::view;

view! {
    /// Number of jobs in each status.
    JobFigures::new(counts: JobCounts) {}

    /// Number of jobs that wait for their next run time.
    #[schema(example = 25)]
    scheduled: u64 = counts.scheduled,
    /// Number of jobs with a running execution.
    #[schema(example = 3)]
    running: u64 = counts.running,
    /// Number of jobs that will not run again and whose last run succeeded.
    #[schema(example = 1200)]
    completed: u64 = counts.completed,
    /// Number of jobs that will not run again and whose last run did not succeed.
    #[schema(example = 50)]
    failed: u64 = counts.failed,
    /// Cancelled jobs.
    #[schema(example = 10)]
    cancelled: u64 = counts.cancelled,
    /// Number of jobs whose run waits for a worker or a retry.
    #[schema(example = 2)]
    pending: u64 = counts.pending,
    /// Paused jobs.
    #[schema(example = 1)]
    paused: u64 = counts.paused,
    /// All jobs that are not deleted.
    #[schema(example = 1291)]
    total: u64 = counts.total,
    /// True if jobs in some states were counted only up to 10,000; `scheduled` is then too high.
    is_estimate: bool = counts.is_estimate,
}

view! {
    /// Totals over all finished executions, including executions that retention has deleted.
    ExecutionFigures::new(totals: RunTotals) {
        let failed = totals.failed + totals.timed_out;
    }

    /// Number of finished executions.
    #[schema(example = 1288)]
    total: u64 = totals.completed + failed + totals.cancelled,
    /// Average duration of successful executions, in milliseconds.
    #[schema(example = 142_000)]
    average_duration_ms: Option<u64> = (totals.success_duration.as_micros() / 1_000)
        .checked_div(totals.completed),
    /// Share of successful executions among executions that succeeded, failed or timed out, 0 to 1;
    /// null if there are none.
    #[schema(example = 0.96)]
    success_rate: Option<f64> = rate(totals.completed, failed),
    /// Successful executions.
    #[schema(example = 1230)]
    completed: u64 = totals.completed,
    /// Failed executions.
    #[schema(example = 48)]
    failed: u64 = totals.failed,
    /// Executions that timed out.
    #[schema(example = 2)]
    timed_out: u64 = totals.timed_out,
    /// Number of executions that were cancelled or superseded by a newer run.
    #[schema(example = 8)]
    cancelled: u64 = totals.cancelled,
    /// Number of finished executions that were retries.
    #[schema(example = 31)]
    retries: u64 = totals.retries,
    /// Number of running executions, as last reported by the nodes.
    #[schema(example = 3)]
    running: u64 = totals.running,
}

view! {
    /// Key figures of the scheduler.
    SchedulerMetrics::new(stats: TenantStats) {}

    /// Number of jobs in each status.
    jobs: JobFigures = JobFigures::new(stats.jobs),
    /// Totals over finished executions, updated every few seconds.
    executions: ExecutionFigures = ExecutionFigures::new(stats.runs),
    /// Time of the last heartbeat of a scheduler; null if no scheduler is running.
    last_check_at: Option<Timestamp> = stats.last_check_at,
    /// Time when the totals in `executions` were last updated.
    last_metrics_update: Option<Timestamp> = stats.runs.at,
    /// Number of executions that were taken over from lost nodes.
    #[schema(example = 5)]
    stale_locks_cleared: u64 = stats.runs.stolen,
}

/// Returns the number of jobs by status, totals over executions, and the last heartbeat of a
/// scheduler.
#[utoipa::path(
    get, path = "/api/v1/scheduler/metrics", tag = "operations",
    responses((status = 200, description = "Figures about the jobs and executions of the tenant", body = SchedulerMetrics)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_scheduler_metrics(call: Call, _: NoParams) -> Answer<SchedulerMetrics> {
    Ok(Json(SchedulerMetrics::new(call.jobs.tenant_stats(call.scope()).await?)))
}
