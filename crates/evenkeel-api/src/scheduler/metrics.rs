//! `GET /api/v1/scheduler/metrics`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::Figures;
use evenkeel_core::Timestamp;
use evenkeel_store::{JobCounts, RunTotals};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::jobs::rate;
use crate::params::NoParams;
use crate::problem::Problem;
use crate::state::App;

/// Jobs by state.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct JobFigures {
    /// Waiting for their next time: what the others leave of the total.
    #[schema(example = 25)]
    pub scheduled: u64,
    /// With an execution that runs.
    #[schema(example = 3)]
    pub running: u64,
    /// Over, and the last run was good.
    #[schema(example = 1200)]
    pub completed: u64,
    /// Over, and the last run was not good.
    #[schema(example = 50)]
    pub failed: u64,
    /// Ended by somebody.
    #[schema(example = 10)]
    pub cancelled: u64,
    /// Waiting for a worker, or for the time of a retry.
    #[schema(example = 2)]
    pub pending: u64,
    /// Waiting to be resumed.
    #[schema(example = 1)]
    pub paused: u64,
    /// All that are not deleted.
    #[schema(example = 1291)]
    pub total: u64,
    /// Some states were counted only up to 10,000: there may be more in them, and fewer that are
    /// scheduled.
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

/// Sums over all executions that have ended, those whose record is forgotten among them.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionFigures {
    /// All of them.
    #[schema(example = 1288)]
    pub total: u64,
    /// What a good one takes on average.
    #[schema(example = 142_000)]
    pub average_duration_ms: Option<u64>,
    /// Of those that ended well or badly, the good ones: from 0 to 1, none if none has ended.
    #[schema(example = 0.96)]
    pub success_rate: Option<f64>,
    /// Those that ended well.
    #[schema(example = 1230)]
    pub completed: u64,
    /// Those that failed.
    #[schema(example = 48)]
    pub failed: u64,
    /// Those that took too long.
    #[schema(example = 2)]
    pub timed_out: u64,
    /// Those that somebody ended, or that a newer time took the place of.
    #[schema(example = 8)]
    pub cancelled: u64,
    /// Of all those, the retries.
    #[schema(example = 31)]
    pub retries: u64,
    /// Those that run right now, as nodes last said.
    #[schema(example = 3)]
    pub running: u64,
}

impl From<RunTotals> for ExecutionFigures {
    fn from(sums: RunTotals) -> Self {
        let bad = sums.failed + sums.timed_out;
        Self {
            total: sums.completed + bad + sums.cancelled,
            average_duration_ms: (sums.good_duration.as_micros() / 1_000)
                .checked_div(sums.completed),
            success_rate: rate(sums.completed, bad),
            completed: sums.completed,
            failed: sums.failed,
            timed_out: sums.timed_out,
            cancelled: sums.cancelled,
            retries: sums.retries,
            running: sums.running,
        }
    }
}

/// How it all goes.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SchedulerMetrics {
    /// Jobs by state.
    pub jobs: JobFigures,
    /// Sums over executions, written every few seconds.
    pub executions: ExecutionFigures,
    /// When a scheduler last said that it is at work; none if none is.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_check_at: Option<Timestamp>,
    /// When the sums were last written.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_metrics_update: Option<Timestamp>,
    /// Executions that were taken over from a node that was lost.
    #[schema(example = 5)]
    pub stale_locks_cleared: u64,
}

impl From<Figures> for SchedulerMetrics {
    fn from(figures: Figures) -> Self {
        let Figures { jobs, runs, last_check_at } = figures;
        Self {
            jobs: jobs.into(),
            executions: runs.into(),
            last_check_at,
            last_metrics_update: runs.at,
            stale_locks_cleared: runs.stolen,
        }
    }
}

/// How it all goes: jobs by state, sums over executions, and whether a scheduler is at work.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/metrics",
    operation_id = "get_scheduler_metrics",
    tag = "operations",
    responses((status = 200, description = "The figures of the tenant", body = SchedulerMetrics)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn metrics(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
) -> Result<Json<SchedulerMetrics>, Problem> {
    Ok(Json(app.jobs.figures(&caller.scope).await?.into()))
}
