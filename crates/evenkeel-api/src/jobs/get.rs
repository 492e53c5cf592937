//! `GET /api/v1/jobs/{id}`

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;

use super::JobView;
use crate::call::Call;
use crate::etag::etag;
use crate::params::{NoParams, PathJob};
use crate::problem::Problem;

/// Returns a job.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "The job's id or name")),
    responses(
        (status = 200, description = "The job", body = JobView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_job(
    call: Call,
    PathJob(id): PathJob,
    _: NoParams,
) -> Result<impl IntoResponse, Problem> {
    let (job, now) = call.jobs.get_with_now(call.scope(), id).await?;
    let tag = etag(job.generation);
    let effective = call.jobs.effective_priority(call.scope(), &job, now).await?;
    let view = JobView::new(job, now, &call.run_ids).waiting_as(effective);
    let executors = call.jobs.executors().catalog();
    Ok(([(header::ETAG, tag)], Json(view.for_role(call.scope().role, executors))))
}
