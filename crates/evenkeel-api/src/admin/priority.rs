//! `PUT /api/admin/jobs/{id}/priority` and `POST /api/admin/jobs/{id}/boost`

use axum::{Extension, Json};
use evenkeel_commands::{read_boost, read_new_priority};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AdminJobView, find_job};
use crate::body::JsonBody;
use crate::call::Call;
use crate::oversight::AuditSummary;
use crate::params::PathId;
use crate::problem::Problem;

/// The new priority of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"priority": 50}))]
pub struct PriorityDocument {
    /// 0 (lowest) to 100 (highest).
    #[schema(minimum = 0, maximum = 100)]
    pub priority: u8,
}

/// How much to raise a job's priority.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"boost": 20}))]
pub struct BoostDocument {
    /// Amount to add to the priority, 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    pub boost: u8,
}

/// Sets the priority of a job.
///
/// Queued runs get the new priority at once and keep the increase for their waiting time.
#[utoipa::path(
    put, path = "/api/admin/jobs/{id}/priority", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = PriorityDocument, example = json!({"priority": 50})),
    responses(
        (status = 200, description = "The job after the change", body = AdminJobView),
        (status = 409, description = "The job is cancelled"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_set_job_priority(
    call: Call,
    PathId(id): PathId,
    JsonBody(document): JsonBody,
) -> Result<(Extension<AuditSummary>, Json<AdminJobView>), Problem> {
    let priority = read_new_priority(&document)?;
    let id = find_job(&call, &id).await?;
    call.jobs.set_priority(call.scope(), id, priority).await?;
    let view = AdminJobView::new(call.jobs.admin_job(call.scope(), id).await?);
    let summary = AuditSummary(format!("priority set to {}", priority.get()));
    Ok((Extension(summary), Json(view)))
}

/// Raises the priority of a job, to at most 100.
///
/// Concurrent boosts add up.
#[utoipa::path(
    post, path = "/api/admin/jobs/{id}/boost", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = BoostDocument, example = json!({"boost": 20})),
    responses(
        (status = 200, description = "The job after the change", body = AdminJobView),
        (status = 409, description = "The job is cancelled"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_boost_job(
    call: Call,
    PathId(id): PathId,
    JsonBody(document): JsonBody,
) -> Result<(Extension<AuditSummary>, Json<AdminJobView>), Problem> {
    let by = read_boost(&document)?;
    let id = find_job(&call, &id).await?;
    call.jobs.boost(call.scope(), id, by).await?;
    let view = AdminJobView::new(call.jobs.admin_job(call.scope(), id).await?);
    let summary = AuditSummary(format!("priority raised by {by} to {}", view.priority));
    Ok((Extension(summary), Json(view)))
}
