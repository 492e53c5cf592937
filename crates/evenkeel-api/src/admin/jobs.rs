//! `GET /api/admin/jobs` and `GET /api/admin/jobs/stats`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{AdminStats, AdminStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::AdminJobView;
use super::page::AdminPageQuery;
use crate::auth::Caller;
use crate::params::{NoParams, Params};
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AdminJobList {
    /// What is on it.
    pub jobs: Vec<AdminJobView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    #[schema(example = 100)]
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// How many jobs are where.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(example = json!({"queued": 12, "running": 3, "failed": 1, "completed": 250,
    "is_estimate": false}))]
pub struct AdminStatsView {
    /// They wait.
    pub queued: u64,
    /// A worker has them.
    pub running: u64,
    /// Their latest run failed, took too long or was cancelled.
    pub failed: u64,
    /// Their latest run ended well.
    pub completed: u64,
    /// There are more than 10,000 jobs: what waits and runs is counted, as far as no more than 10,000
    /// wait, or were begun since the oldest that runs, on all nodes together, and the rest estimated
    /// from the first 10,000.
    pub is_estimate: bool,
}

impl From<AdminStats> for AdminStatsView {
    fn from(stats: AdminStats) -> Self {
        let AdminStats { queued, running, failed, completed, is_estimate } = stats;
        Self { queued, running, failed, completed, is_estimate }
    }
}

/// How many jobs are queued, run, failed and completed. What is only scheduled for later and never
/// ran is in none of these.
#[utoipa::path(
    get,
    path = "/api/admin/jobs/stats",
    operation_id = "admin_job_stats",
    tag = "admin",
    responses((status = 200, description = "The counts", body = AdminStatsView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn stats(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
) -> Result<Json<AdminStatsView>, Problem> {
    Ok(Json(app.jobs.admin_stats(&caller.scope).await?.into()))
}

/// The jobs whose latest run is in a state, or all, in the order of their creation.
///
/// Up to 10,000 jobs are looked at one by one, and `total` is exact. Of more, those that wait or run
/// are found by themselves; of the others a page may have fewer than were asked for, even none, and
/// still a `next_cursor`. Then an `offset` together with a `status` leads no further than the 10,000
/// jobs that are looked at for a page: what lies beyond is 422, and found by following `next_cursor`.
#[utoipa::path(
    get,
    path = "/api/admin/jobs",
    operation_id = "admin_list_jobs",
    tag = "admin",
    params(
        ("status" = Option<String>, Query, pattern = "^(queued|crawling|success|failed)$",
         description = "Those whose latest run is queued, crawling, success or failed",
         example = "queued"),
        AdminPageQuery,
    ),
    responses((status = 200, description = "A part of the list", body = AdminJobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<AdminJobList>, Problem> {
    let status = params.word("status", &AdminStatus::words());
    let request = AdminPageQuery::take(&mut params);
    params.finish()?;
    let page = app.jobs.admin_list(&caller.scope, status, request).await?;
    Ok(Json(AdminJobList {
        jobs: page.items.into_iter().map(AdminJobView::from).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
