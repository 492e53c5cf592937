//! `GET /api/admin/jobs` and `GET /api/admin/jobs/stats`

use axum::Json;
use evenkeel_commands::{AdminStats, AdminStatus};

use super::AdminJobView;
use super::page::AdminPageQuery;
use crate::call::{Answer, Call};
use crate::page::list_answer;
use crate::params::{NoParams, Params};
use crate::view::view;

list_answer! {
    /// One page of jobs.
    AdminJobList {
        /// The jobs, oldest first.
        jobs: AdminJobView
    }
    limit: #[schema(example = 100)]
}

view! {
    /// Number of jobs by the status of their latest run.
    #[schema(example = json!({"queued": 12, "running": 3, "failed": 1, "completed": 250,
        "is_estimate": false}))]
    AdminStatsView::new(stats: AdminStats) {}

    /// Jobs with a run that waits for a worker, a retry or a permit.
    queued: u64 = stats.queued,
    /// Jobs with a running attempt.
    running: u64 = stats.running,
    /// Jobs whose latest run failed, timed out or was cancelled.
    failed: u64 = stats.failed,
    /// Jobs whose latest run succeeded.
    completed: u64 = stats.completed,
    /// True if the tenant has more than 10,000 jobs; `failed` and `completed` are then extrapolated
    /// from the first 10,000 jobs. `queued` is exact if at most 10,000 runs of all tenants are
    /// queued. `running` is exact if at most 10,000 runs of all tenants were started since the
    /// oldest running attempt.
    is_estimate: bool = stats.is_estimate,
}

/// Counts the jobs that are queued, running, failed and completed.
///
/// A job that is scheduled for a later time and never ran is not counted.
#[utoipa::path(
    get, path = "/api/admin/jobs/stats", tag = "admin",
    responses((status = 200, description = "The counts", body = AdminStatsView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn admin_job_stats(call: Call, _: NoParams) -> Answer<AdminStatsView> {
    Ok(Json(AdminStatsView::new(call.jobs.admin_stats(call.scope()).await?)))
}

/// Lists jobs, oldest first, optionally only jobs whose latest run has a given status.
///
/// `total` is exact if the tenant has up to 10,000 jobs. If the tenant has more than 10,000 jobs, a
/// page of jobs with the status `success` or `failed` may have fewer jobs than `limit`, or none,
/// although `next_cursor` is set. If the tenant has more than 10,000 jobs, an `offset` above 10,000
/// together with `status` is answered with 422; follow `next_cursor` instead.
#[utoipa::path(
    get, path = "/api/admin/jobs", tag = "admin",
    params(
        ("status" = Option<String>, Query, pattern = "^(queued|crawling|success|failed)$",
         description = "Lists only jobs whose latest run has this status: queued, crawling, success or failed",
         example = "queued"),
        AdminPageQuery,
    ),
    responses((status = 200, description = "One page of the list", body = AdminJobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn admin_list_jobs(call: Call, mut params: Params) -> Answer<AdminJobList> {
    let status = params.choice("status", &AdminStatus::words());
    let request = AdminPageQuery::take(&mut params);
    params.finish()?;
    let page = call.jobs.admin_list(call.scope(), status, request).await?;
    Ok(Json(AdminJobList::new(&call, &request, page, AdminJobView::new)))
}
