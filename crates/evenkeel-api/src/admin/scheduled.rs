//! `GET /api/admin/scheduled-jobs` and `GET /api/admin/scheduled-jobs/{id}`

use axum::Json;

use super::page::AdminPageQuery;
use super::{ScheduledJobView, find_job};
use crate::call::{Answer, Call};
use crate::page::list_answer;
use crate::params::{NoParams, Params, PathId};

list_answer! {
    /// One page of scheduled jobs.
    ScheduledJobList {
        /// The jobs, oldest first.
        scheduled_jobs: ScheduledJobView
    }
    limit: #[schema(example = 100)]
}

/// Lists the jobs that have a cron expression or an interval, oldest first.
///
/// If the tenant has more than 10,000 jobs, `total` is an estimate, and a page may have fewer jobs
/// than `limit` although `next_cursor` is set.
#[utoipa::path(
    get, path = "/api/admin/scheduled-jobs", tag = "admin",
    params(AdminPageQuery),
    responses((status = 200, description = "One page of the list", body = ScheduledJobList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn admin_list_scheduled_jobs(
    call: Call,
    mut params: Params,
) -> Answer<ScheduledJobList> {
    let request = AdminPageQuery::take(&mut params);
    params.finish()?;
    let page = call.jobs.list_scheduled(call.scope(), request).await?;
    Ok(Json(ScheduledJobList::new(&call, &request, page, ScheduledJobView::new)))
}

/// Returns a scheduled job.
#[utoipa::path(
    get, path = "/api/admin/scheduled-jobs/{id}", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses((status = 200, description = "The job", body = ScheduledJobView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn admin_get_scheduled_job(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
) -> Answer<ScheduledJobView> {
    let id = find_job(&call, &id).await?;
    Ok(Json(ScheduledJobView::new(call.jobs.get_scheduled(call.scope(), id).await?)))
}
