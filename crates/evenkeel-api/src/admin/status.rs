//! `PUT /api/admin/jobs/{id}/status` and `POST /api/admin/jobs/{id}/retry`

use axum::{Extension, Json};
use evenkeel_commands::read_status;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AdminJobView, find_job};
use crate::body::{JsonBody, NoBody};
use crate::call::{Answer, Call};
use crate::oversight::AuditSummary;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// The status to set for the latest run of a job.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"status": "queued"}))]
pub struct StatusDocument {
    /// `queued`, `crawling`, `success` or `failed`.
    #[schema(pattern = "^(queued|crawling|success|failed)$")]
    pub status: String,
}

/// Overrides the status of the latest run of a job.
///
/// Setting `success` or `failed` finishes a queued or running run without a retry. An override to
/// `success` or `failed` stops the running attempt, and the server rejects later reports of its
/// worker. Setting `queued` puts a running run back into the queue, where a worker may claim it
/// after five seconds. Setting `queued` adds a retry to a failed run, and starts a new run after a
/// successful run. Setting the status that the run already has changes nothing. The server answers
/// 409 to the status `crawling`, which only workers can set. The server also answers 409 if the run
/// has already finished with another outcome than the requested one.
#[utoipa::path(
    put, path = "/api/admin/jobs/{id}/status", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = StatusDocument, example = json!({"status": "queued"})),
    responses(
        (status = 200, description = "The job after the change", body = AdminJobView),
        (status = 409, description = "The job has no run that can have this status, or the job is \
            cancelled; its run is being cancelled or the job is paused; another job has its \
            dedup_key; or the run is due but no node is alive to fire it"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_set_job_status(
    call: Call,
    PathId(id): PathId,
    JsonBody(document): JsonBody,
) -> Result<(Extension<AuditSummary>, Json<AdminJobView>), Problem> {
    let status = read_status(&document)?;
    let id = find_job(&call, &id).await?;
    let view = AdminJobView::new(call.jobs.set_status(call.scope(), id, status).await?);
    Ok((Extension(AuditSummary(format!("set to {}", status.as_str()))), Json(view)))
}

/// Queues a new run of a job whose latest run failed.
///
/// The new run starts with a retry count of 0.
#[utoipa::path(
    post, path = "/api/admin/jobs/{id}/retry", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses(
        (status = 200, description = "The job after the change", body = AdminJobView),
        (status = 409, description = "The latest run of the job did not fail or has not finished"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_retry_job(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Answer<AdminJobView> {
    let id = find_job(&call, &id).await?;
    Ok(Json(AdminJobView::new(call.jobs.admin_retry(call.scope(), id).await?)))
}
