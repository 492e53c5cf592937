//! `GET /api/v1/jobs/{id}/stats`

use axum::Json;
use axum::extract::State;
use evenkeel_core::Timestamp;
use evenkeel_store::Job;
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// How a job has done over its life.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobStats {
    /// Executions that were started, retries among them.
    #[schema(example = 100)]
    pub total_executions: u64,
    /// Those that ended well.
    #[schema(example = 95)]
    pub successful_runs: u64,
    /// Those that failed or took too long.
    #[schema(example = 5)]
    pub failed_runs: u64,
    /// What a good one takes: a moving average, in which the newest weighs most.
    #[schema(example = 145_000)]
    pub average_duration_ms: Option<u64>,
    /// When the last one started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_execution_at: Option<Timestamp>,
    /// When the last good one ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_success_at: Option<Timestamp>,
    /// The next regular time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_scheduled_at: Option<Timestamp>,
    /// Of those that ended well or badly, the good ones: from 0 to 1, none if none has ended.
    #[schema(example = 0.95)]
    pub success_rate: Option<f64>,
    /// So many failed since the last good one.
    #[schema(example = 0)]
    pub consecutive_failures: u32,
}

impl From<&Job> for JobStats {
    fn from(job: &Job) -> Self {
        Self {
            total_executions: job.executions,
            successful_runs: job.good_runs,
            failed_runs: job.bad_runs,
            average_duration_ms: job
                .history
                .average_good_duration
                .map(|average| average.as_micros() / 1_000),
            last_execution_at: job.history.last_start_at,
            last_success_at: job.history.last_good_end_at,
            next_scheduled_at: job.next_at,
            success_rate: rate(job.good_runs, job.bad_runs),
            consecutive_failures: job.history.consecutive_failures,
        }
    }
}

/// The share of good ones.
pub(crate) fn rate(good: u64, bad: u64) -> Option<f64> {
    let all = good + bad;
    (all > 0).then(|| good as f64 / all as f64)
}

/// How a job has done over its life.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/stats",
    operation_id = "get_job_stats",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses((status = 200, description = "Its figures", body = JobStats)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn stats(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
) -> Result<Json<JobStats>, Problem> {
    let job = app.jobs.get(&caller.scope, id).await?;
    Ok(Json(JobStats::from(&job)))
}
