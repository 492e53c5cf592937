//! `POST /api/v1/jobs`

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use super::{JobDocument, JobView};
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// Creates a job. Without a schedule it runs once, now.
#[utoipa::path(
    post,
    path = "/api/v1/jobs",
    operation_id = "create_job",
    tag = "jobs",
    request_body = JobDocument,
    responses(
        (status = 201, description = "The job", body = JobView,
         headers(("Location" = String, description = "Where it is"))),
        (status = 409, description = "Another job has the name", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "The document is wrong; all that is wrong is in `errors`",
         body = Problem, content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    params.finish()?;
    // Asked for first: once the job is there, nothing must go wrong any more.
    let now = app.jobs.now().await?;
    let job = app.jobs.create(&caller.scope, &document).await?;
    let place = format!("/api/v1/jobs/{}", job.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(JobView::new(job, now))))
}
