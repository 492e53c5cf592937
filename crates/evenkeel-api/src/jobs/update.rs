//! `PUT /api/v1/jobs/{id}` and `PATCH /api/v1/jobs/{id}`

use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use evenkeel_commands::{Edit, EditMode, warnings_of};
use evenkeel_core::{JobId, RunIds, Timestamp};
use evenkeel_store::Job;
use serde_json::{Map, Value};

use super::JobView;
use crate::body::JsonBody;
use crate::call::Call;
use crate::etag::{etag, if_match};
use crate::params::PathJob;
use crate::problem::Problem;

/// Changes a job.
///
/// Send the job as returned by `GET` with edited fields, or only the fields to change. Fields that
/// are missing in the request keep their values, null removes a value, and read-only fields are
/// ignored. The next run time changes only if the schedule changes.
#[utoipa::path(
    put, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has this ETag; * allows any version"),
    ),
    request_body(content = Object, description = "The fields to change, as returned by GET or as in a \
        new job",
        example = json!({"max_retries": 5, "retry_backoff_seconds": 120})),
    responses(
        (status = 200, description = "The job after the change", body = JobView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "Another job has the name, or the job is cancelled"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn update_job(
    call: Call,
    PathJob(id): PathJob,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&call, id, &headers, sent, EditMode::Put).await
}

/// Changes some fields of a job with a JSON merge patch (RFC 7396).
///
/// Null removes a value, and objects such as `metadata` are merged. The next run time changes only
/// if the schedule changes.
#[utoipa::path(
    patch, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the job still has this ETag; * allows any version"),
    ),
    request_body(content = Object, description = "The fields to change",
        example = json!({"priority": 50, "metadata": {"owner": "ann"}})),
    responses(
        (status = 200, description = "The job after the change", body = JobView,
         headers(("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "Another job has the name, or the job is cancelled"),
        (status = 412, description = "The job has changed since this ETag; the header ETag has its present version"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn patch_job(
    call: Call,
    PathJob(id): PathJob,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&call, id, &headers, sent, EditMode::Patch).await
}

async fn update(
    call: &Call,
    id: JobId,
    headers: &HeaderMap,
    sent: Value,
    mode: EditMode,
) -> Result<impl IntoResponse + use<>, Problem> {
    let edit = Edit { sent, mode, if_generation: if_match(headers) };
    let (job, now) = call.jobs.update(call.scope(), id, &edit, &shown(&call.run_ids)).await?;
    let tag = etag(job.generation);
    // The change is already stored, so a failure to read the priority must not fail the request.
    let effective = call.jobs.effective_priority(call.scope(), &job, now).await;
    let effective = effective.unwrap_or(job.definition.priority);
    let warnings = Some(warnings_of(&job)).filter(|warnings| !warnings.is_empty());
    let view = JobView { warnings, ..JobView::new(job, now, &call.run_ids).waiting_as(effective) };
    Ok(([(header::ETAG, tag)], Json(view)))
}

/// Returns a function that renders the fields of a job as `GET` shows them.
pub(crate) fn shown(ids: &RunIds) -> impl Fn(&Job, Timestamp) -> Map<String, Value> {
    |job, now| match serde_json::to_value(JobView::new(job.clone(), now, ids)) {
        Ok(Value::Object(shown)) => shown,
        _ => Map::new(),
    }
}
