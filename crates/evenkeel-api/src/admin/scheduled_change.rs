//! `POST /api/admin/scheduled-jobs`, `PUT` and `DELETE /api/admin/scheduled-jobs/{id}`,
//! `POST /api/admin/scheduled-jobs/{id}/toggle`

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use evenkeel_commands::read_enabled;
use evenkeel_core::{AttemptId, JobId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ScheduledJobView, find_job};
use crate::body::{JsonBody, NoBody};
use crate::call::{Answer, Call};
use crate::jobs::update::shown;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// A new scheduled job. The request may also contain any job field of `POST /api/v1/jobs`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(example = json!({"name": "daily-askreddit", "description": "Daily crawl of AskReddit",
    "subreddit_id": 1, "cron_expression": "@daily", "enabled": true, "priority": 10}))]
pub struct ScheduledDocument {
    /// Name, unique within the tenant.
    pub name: String,
    /// Free text for humans.
    pub description: Option<String>,
    /// Number of the job's target. If no target has this number, the server creates one.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub subreddit_id: Option<i64>,
    /// Schedule of the job: a cron expression, or a text such as `@daily` or `@every 30m`.
    pub cron_expression: String,
    /// False creates the job paused. Default: true.
    pub enabled: Option<bool>,
    /// Priority of the job's runs, from 0 (lowest) to 100 (highest).
    #[schema(minimum = 0, maximum = 100)]
    pub priority: Option<u8>,
}

/// Whether a job is enabled.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"enabled": false}))]
pub struct EnabledDocument {
    /// False pauses the job, true resumes it.
    pub enabled: bool,
}

/// The deleted job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedScheduledView {
    /// The job's number.
    pub id: i64,
    /// The job's UUID.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// Always true.
    pub deleted: bool,
    /// Ids of executions that were still running and were asked to stop.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub still_running: Vec<AttemptId>,
}

/// Creates a scheduled job.
///
/// If no target has the number `subreddit_id`, the server creates one. The job crawls the target's
/// URL unless `executor_type` and `executor_config` name another executor. With `unique` or
/// `dedup_key`, the server returns an existing scheduled job that has the same deduplication key,
/// instead of creating a job.
#[utoipa::path(
    post, path = "/api/admin/scheduled-jobs", tag = "admin",
    request_body(content = ScheduledDocument,
        example = json!({"name": "daily-askreddit", "description": "Daily crawl of AskReddit",
            "subreddit_id": 1, "cron_expression": "@daily", "enabled": true, "priority": 10})),
    responses(
        (status = 201, description = "The job", body = ScheduledJobView,
         headers(("Location" = String, description = "Path of the new resource"))),
        (status = 200, description = "A scheduled job with the same dedup_key exists and is returned; \
            nothing was created, and `deduplicated` is true", body = ScheduledJobView,
         headers(("Location" = String, description = "Path of the new resource"))),
        (status = 409, description = "Another job has the name, or a job that is not a scheduled job has \
            the dedup_key"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_create_scheduled_job(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let (created, deduplicated) =
        call.jobs.create_scheduled(call.scope(), &document, &call.caller.subject).await?;
    let view = ScheduledJobView { deduplicated, ..ScheduledJobView::new(created) };
    let already_exists = deduplicated == Some(true);
    let status = if already_exists { StatusCode::OK } else { StatusCode::CREATED };
    let place = HeaderValue::try_from(format!("/api/admin/scheduled-jobs/{}", view.id))
        .unwrap_or_else(|_| HeaderValue::from_static("/api/admin/scheduled-jobs"));
    Ok((status, [(header::LOCATION, place)], Json(view)))
}

/// Changes a scheduled job; fields that are missing in the request keep their values.
///
/// A changed `cron_expression` also sets a new next run time.
#[utoipa::path(
    put, path = "/api/admin/scheduled-jobs/{id}", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = Object, description = "The fields to change, as returned by GET or as in a \
        new scheduled job",
        example = json!({"name": "hourly-worldnews", "description": "Hourly crawl of WorldNews",
            "cron_expression": "@hourly", "enabled": true, "priority": 20})),
    responses(
        (status = 200, description = "The job after the change", body = ScheduledJobView),
        (status = 409, description = "Another job has the name or the dedup_key, or the job is \
            cancelled; nothing was changed"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_update_scheduled_job(
    call: Call,
    PathId(id): PathId,
    JsonBody(document): JsonBody,
) -> Answer<ScheduledJobView> {
    let id = find_job(&call, &id).await?;
    let shown = shown(&call.run_ids);
    let changed = call.jobs.update_scheduled(call.scope(), id, &document, &shown).await?;
    Ok(Json(ScheduledJobView::new(changed)))
}

/// Deletes a scheduled job.
///
/// Deleting a scheduled job withdraws its queued runs and asks its running executions to stop.
#[utoipa::path(
    delete, path = "/api/admin/scheduled-jobs/{id}", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses((status = 200, description = "The deleted job", body = DeletedScheduledView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_delete_scheduled_job(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Answer<DeletedScheduledView> {
    let id = find_job(&call, &id).await?;
    let (job, effect) = call.jobs.delete_scheduled(call.scope(), id).await?;
    let still_running =
        effect.running.into_iter().map(|key| call.run_ids.attempt_id(key)).collect();
    Ok(Json(DeletedScheduledView { id: job.number, uuid: job.id, deleted: true, still_running }))
}

/// Enables or disables a scheduled job.
///
/// Disabling pauses the job and withdraws its queued runs.
#[utoipa::path(
    post, path = "/api/admin/scheduled-jobs/{id}/toggle", tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = EnabledDocument, example = json!({"enabled": false})),
    responses(
        (status = 200, description = "The job after the change", body = ScheduledJobView),
        (status = 409, description = "The job has ended, or another job has its dedup_key"),
        (status = 412, description = "The job was changed concurrently several times; try again"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_toggle_scheduled_job(
    call: Call,
    PathId(id): PathId,
    JsonBody(document): JsonBody,
) -> Answer<ScheduledJobView> {
    let enabled = read_enabled(&document)?;
    let id = find_job(&call, &id).await?;
    Ok(Json(ScheduledJobView::new(call.jobs.enable(call.scope(), id, enabled).await?)))
}
