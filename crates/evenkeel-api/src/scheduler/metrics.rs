//! `GET /api/v1/scheduler/metrics`

use axum::Json;
use evenkeel_commands::TenantStats;
use evenkeel_core::Timestamp;
use evenkeel_store::{JobCounts, RunTotals};
use serde::Serialize;
use utoipa::ToSchema;

use crate::call::{Answer, Call};
use crate::jobs::stats::rate;
use crate::params::NoParams;

/// Number of jobs in each status.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct JobFigures {
    /// Number of jobs that wait for their next run time.
    #[schema(example = 25)]
    pub scheduled: u64,
    /// Number of jobs with a running execution.
    #[schema(example = 3)]
    pub running: u64,
    /// Number of jobs that will not run again and whose last run succeeded.
    #[schema(example = 1200)]
    pub completed: u64,
    /// Number of jobs that will not run again and whose last run did not succeed.
    #[schema(example = 50)]
    pub failed: u64,
    /// Cancelled jobs.
    #[schema(example = 10)]
    pub cancelled: u64,
    /// Number of jobs whose run waits for a worker or a retry.
    #[schema(example = 2)]
    pub pending: u64,
    /// Paused jobs.
    #[schema(example = 1)]
    pub paused: u64,
    /// All jobs that are not deleted.
    #[schema(example = 1291)]
    pub total: u64,
    /// True if jobs in some states were counted only up to 10,000; `scheduled` is then too high.
    pub is_estimate: bool,
}

impl From<JobCounts> for JobFigures {
    fn from(counts: JobCounts) -> Self {
        let JobCounts { total, pending, scheduled, running, paused, .. } = counts;
        let JobCounts { completed, failed, cancelled, is_estimate, .. } = counts;
        Self {
            scheduled,
            running,
            completed,
            failed,
            cancelled,
            pending,
            paused,
            total,
            is_estimate,
        }
    }
}

/// Totals over all finished executions, including executions that retention has deleted.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionFigures {
    /// Number of finished executions.
    #[schema(example = 1288)]
    pub total: u64,
    /// Average duration of successful executions, in milliseconds.
    #[schema(example = 142_000)]
    pub average_duration_ms: Option<u64>,
    /// Share of successful executions among executions that succeeded, failed or timed out, 0 to 1;
    /// null if there are none.
    #[schema(example = 0.96)]
    pub success_rate: Option<f64>,
    /// Successful executions.
    #[schema(example = 1230)]
    pub completed: u64,
    /// Failed executions.
    #[schema(example = 48)]
    pub failed: u64,
    /// Executions that timed out.
    #[schema(example = 2)]
    pub timed_out: u64,
    /// Number of executions that were cancelled or superseded by a newer run.
    #[schema(example = 8)]
    pub cancelled: u64,
    /// Number of finished executions that were retries.
    #[schema(example = 31)]
    pub retries: u64,
    /// Number of running executions, as last reported by the nodes.
    #[schema(example = 3)]
    pub running: u64,
}

impl From<RunTotals> for ExecutionFigures {
    fn from(totals: RunTotals) -> Self {
        let failed = totals.failed + totals.timed_out;
        Self {
            total: totals.completed + failed + totals.cancelled,
            average_duration_ms: (totals.success_duration.as_micros() / 1_000)
                .checked_div(totals.completed),
            success_rate: rate(totals.completed, failed),
            completed: totals.completed,
            failed: totals.failed,
            timed_out: totals.timed_out,
            cancelled: totals.cancelled,
            retries: totals.retries,
            running: totals.running,
        }
    }
}

/// Key figures of the scheduler.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SchedulerMetrics {
    /// Number of jobs in each status.
    pub jobs: JobFigures,
    /// Totals over finished executions, updated every few seconds.
    pub executions: ExecutionFigures,
    /// Time of the last heartbeat of a scheduler; null if no scheduler is running.
    pub last_check_at: Option<Timestamp>,
    /// Time when the totals in `executions` were last updated.
    pub last_metrics_update: Option<Timestamp>,
    /// Number of executions that were taken over from lost nodes.
    #[schema(example = 5)]
    pub stale_locks_cleared: u64,
}

impl From<TenantStats> for SchedulerMetrics {
    fn from(stats: TenantStats) -> Self {
        let TenantStats { jobs, runs, last_check_at } = stats;
        Self {
            jobs: jobs.into(),
            executions: runs.into(),
            last_check_at,
            last_metrics_update: runs.at,
            stale_locks_cleared: runs.stolen,
        }
    }
}

/// Returns the number of jobs by status, totals over executions, and the last heartbeat of a
/// scheduler.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/metrics",
    tag = "operations",
    responses((status = 200, description = "Figures about the jobs and executions of the tenant", body = SchedulerMetrics)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_scheduler_metrics(call: Call, _: NoParams) -> Answer<SchedulerMetrics> {
    Ok(Json(call.jobs.tenant_stats(call.scope()).await?.into()))
}
