//! `GET /api/admin/scheduled-jobs` and `GET /api/admin/scheduled-jobs/{id}`

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::AdminPageQuery;
use super::{ScheduledJobView, find_job};
use crate::auth::Caller;
use crate::params::{NoParams, Params, PathId};
use crate::problem::Problem;
use crate::state::App;

/// One page of scheduled jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ScheduledJobList {
    /// The jobs, oldest first.
    pub scheduled_jobs: Vec<ScheduledJobView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// The page size: the `limit` of the request.
    #[schema(example = 100)]
    pub limit: u32,
    /// Number of items skipped before this page: the `offset` of the request.
    pub offset: u32,
    /// The `cursor` that fetches the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Lists the jobs that run by a cron expression or an interval, oldest first.
///
/// If the tenant has more than 10,000 jobs, `total` is an estimate, and a page may have fewer jobs
/// than `limit` and still a `next_cursor`.
#[utoipa::path(
    get,
    path = "/api/admin/scheduled-jobs",
    operation_id = "admin_list_scheduled_jobs",
    tag = "admin",
    params(AdminPageQuery),
    responses((status = 200, description = "One page of the list", body = ScheduledJobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_scheduled(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ScheduledJobList>, Problem> {
    let request = AdminPageQuery::take(&mut params);
    params.finish()?;
    let page = app.jobs.list_scheduled(&caller.scope, request).await?;
    Ok(Json(ScheduledJobList {
        scheduled_jobs: page.items.into_iter().map(ScheduledJobView::from).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}

/// Returns a scheduled job.
#[utoipa::path(
    get,
    path = "/api/admin/scheduled-jobs/{id}",
    operation_id = "admin_get_scheduled_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses((status = 200, description = "The job", body = ScheduledJobView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_scheduled(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
) -> Result<Json<ScheduledJobView>, Problem> {
    let id = find_job(&app, &caller, &id).await?;
    Ok(Json(app.jobs.get_scheduled(&caller.scope, id).await?.into()))
}
