//! `POST /api/admin/scheduled-jobs`, `PUT` and `DELETE /api/admin/scheduled-jobs/{id}`,
//! `POST /api/admin/scheduled-jobs/{id}/toggle`

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use evenkeel_commands::read_enabled;
use evenkeel_core::{AttemptId, JobId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ScheduledJobView, meant, wrong};
use crate::auth::Caller;
use crate::body::{JsonBody, NoBody};
use crate::jobs::shown;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// A scheduled job to be made. Any other field of a job of `/api/v1/jobs` may be there as well.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(example = json!({"name": "daily-askreddit", "description": "Daily crawl of AskReddit",
    "subreddit_id": 1, "cron_expression": "@daily", "enabled": true, "priority": 10}))]
pub struct ScheduledDocument {
    /// Its name; no two jobs have the same.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// The number of its target, which is made if there is none.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub subreddit_id: Option<i64>,
    /// When it runs: `@daily`, `@every 30m`, `0 9 * * 1-5`…
    pub cron_expression: String,
    /// Does it run? True if it is left out.
    pub enabled: Option<bool>,
    /// The priority of its runs, 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    pub priority: Option<u8>,
}

/// Whether a job runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"enabled": false}))]
pub struct EnabledDocument {
    /// Does it?
    pub enabled: bool,
}

/// A scheduled job that is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedScheduledView {
    /// Which one, by its number.
    pub id: i64,
    /// By its UUID.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// Always true.
    pub deleted: bool,
    /// Executions that still run and were asked to end.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub still_running: Vec<AttemptId>,
}

/// Makes a scheduled job. Its target is made if there is none with that number; it crawls the
/// address of that, unless `executor_type` and `executor_config` say otherwise. With `unique` or a
/// `dedup_key`, the scheduled job that has the key is the answer instead.
#[utoipa::path(
    post,
    path = "/api/admin/scheduled-jobs",
    operation_id = "admin_create_scheduled_job",
    tag = "admin",
    request_body(content = ScheduledDocument,
        example = json!({"name": "daily-askreddit", "description": "Daily crawl of AskReddit",
            "subreddit_id": 1, "cron_expression": "@daily", "enabled": true, "priority": 10})),
    responses(
        (status = 201, description = "The job", body = ScheduledJobView,
         headers(("Location" = String, description = "Where it is"))),
        (status = 200, description = "The scheduled job that has the same dedup_key, as it is; nothing \
            was made, and `deduplicated` is true", body = ScheduledJobView,
         headers(("Location" = String, description = "Where it is"))),
        (status = 409, description = "Another job has the name, or one that is no scheduled job has the \
            dedup_key"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn create_scheduled(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let (made, deduplicated) =
        app.jobs.create_scheduled(&caller.scope, &document, &caller.subject).await?;
    let view = ScheduledJobView { deduplicated, ..ScheduledJobView::from(made) };
    let is_there = deduplicated == Some(true);
    let status = if is_there { StatusCode::OK } else { StatusCode::CREATED };
    let place = HeaderValue::try_from(format!("/api/admin/scheduled-jobs/{}", view.id))
        .unwrap_or_else(|_| HeaderValue::from_static("/api/admin/scheduled-jobs"));
    Ok((status, [(header::LOCATION, place)], Json(view)))
}

/// Changes a scheduled job: what is left out stays. Another `cron_expression` gives it another next
/// time.
#[utoipa::path(
    put,
    path = "/api/admin/scheduled-jobs/{id}",
    operation_id = "admin_update_scheduled_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = Object, description = "Fields of a scheduled job, as they are shown or as \
        in a new one",
        example = json!({"name": "hourly-worldnews", "description": "Hourly crawl of WorldNews",
            "cron_expression": "@hourly", "enabled": true, "priority": 20})),
    responses(
        (status = 200, description = "The job as it is now", body = ScheduledJobView),
        (status = 409, description = "Another job has the name or the dedup_key, or the job was \
            cancelled; nothing is changed then"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn update_scheduled(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<ScheduledJobView>, Problem> {
    let id = meant(&app, &caller, &id).await?;
    Ok(Json(
        app.jobs.update_scheduled(&caller.scope, id, &document, &shown(&app.run_ids)).await?.into(),
    ))
}

/// Deletes a scheduled job. What waits of it is withdrawn, what runs is asked to end.
#[utoipa::path(
    delete,
    path = "/api/admin/scheduled-jobs/{id}",
    operation_id = "admin_delete_scheduled_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses((status = 200, description = "It is gone", body = DeletedScheduledView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_scheduled(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<Json<DeletedScheduledView>, Problem> {
    let id = meant(&app, &caller, &id).await?;
    let (job, gone) = app.jobs.delete_scheduled(&caller.scope, id).await?;
    let still_running = gone.running.into_iter().map(|key| app.run_ids.attempt_id(key)).collect();
    Ok(Json(DeletedScheduledView { id: job.number, uuid: job.id, deleted: true, still_running }))
}

/// Lets a scheduled job run, or not: then it is paused, and what waits of it is withdrawn.
#[utoipa::path(
    post,
    path = "/api/admin/scheduled-jobs/{id}/toggle",
    operation_id = "admin_toggle_scheduled_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = EnabledDocument, example = json!({"enabled": false})),
    responses(
        (status = 200, description = "The job as it is now", body = ScheduledJobView),
        (status = 409, description = "The job is over, or another has its dedup_key"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn toggle_scheduled(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<ScheduledJobView>, Problem> {
    let enabled = read_enabled(&document).map_err(wrong)?;
    let id = meant(&app, &caller, &id).await?;
    Ok(Json(app.jobs.enable(&caller.scope, id, enabled).await?.into()))
}
