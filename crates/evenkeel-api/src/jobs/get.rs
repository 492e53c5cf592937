//! `GET /api/v1/jobs/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::JobView;
use crate::auth::Caller;
use crate::etag::etag;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// Returns a job.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}",
    operation_id = "get_job",
    tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses(
        (status = 200, description = "The job", body = JobView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    _: NoParams,
) -> Result<impl IntoResponse, Problem> {
    let (job, now) = app.jobs.get_with_now(&caller.scope, id).await?;
    let tag = etag(job.generation);
    let effective = app.jobs.effective_priority(&caller.scope, &job, now).await?;
    let view = JobView::new(job, now, &app.run_ids).waiting_as(effective);
    let executors = app.jobs.executors().catalog();
    Ok(([(header::ETAG, tag)], Json(view.for_role(caller.scope.role, executors))))
}
