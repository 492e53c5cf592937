//! `GET /api/admin/scheduled-jobs` and `GET /api/admin/scheduled-jobs/{id}`

use axum::Json;
use axum::extract::State;

use super::page::AdminPageQuery;
use super::{ScheduledJobView, find_job};
use crate::auth::Caller;
use crate::page::list_answer;
use crate::params::{NoParams, Params, PathId};
use crate::problem::Problem;
use crate::state::App;

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
    Ok(Json(ScheduledJobList::new(&app, &request, page, ScheduledJobView::from)))
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
