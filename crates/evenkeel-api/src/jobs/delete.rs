//! `DELETE /api/v1/jobs/{id}`

use axum::Json;
use axum::http::HeaderMap;
use evenkeel_core::{AttemptId, JobId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::NoBody;
use crate::call::{Answer, Call};
use crate::etag::if_match;
use crate::params::{Params, PathJob};

/// A deleted job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Always true.
    pub deleted: bool,
    /// Ids of executions that are still running and were asked to stop.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub still_running: Vec<AttemptId>,
    /// Number of executions and dead letters that were deleted with the job; only with
    /// `purge=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged: Option<u64>,
}

/// Deletes a job.
///
/// Deleting a job withdraws its queued runs and asks its running executions to stop. The execution
/// history of the job stays until retention deletes it. `purge=true` also deletes the execution
/// history at once, except for active runs. A purge also works for a job that was already deleted.
#[utoipa::path(
    delete, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("purge" = Option<bool>, Query, description = "Also deletes the execution history of the job"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has one of these ETags; * allows any version"),
    ),
    responses(
        (status = 200, description = "The deleted job", body = DeletedView),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_job(
    call: Call,
    PathJob(id): PathJob,
    mut params: Params,
    headers: HeaderMap,
    _: NoBody,
) -> Answer<DeletedView> {
    let purges = params.flag("purge").unwrap_or(false);
    params.finish()?;
    let generations = if_match(&headers);
    let deleted = call.jobs.delete(call.scope(), id, purges, generations.as_deref()).await?;
    let still_running =
        deleted.running.into_iter().map(|key| call.run_ids.attempt_id(key)).collect();
    Ok(Json(DeletedView { id, deleted: true, still_running, purged: deleted.purged }))
}
