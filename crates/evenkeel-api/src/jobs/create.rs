//! `POST /api/v1/jobs`

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use evenkeel_commands::{CreatedJob, warnings_of};

use super::{JobDocument, JobView};
use crate::body::JsonBody;
use crate::call::Call;
use crate::etag::etag;
use crate::problem::Problem;

/// Creates a job.
///
/// A job without a schedule runs once, as soon as it is created.
#[utoipa::path(
    post, path = "/api/v1/jobs", tag = "jobs",
    request_body(content = JobDocument, examples(
        ("Crawl a site every half hour" = (value = json!({
            "source_id": "news-site", "source_name": "example.com", "url": "https://example.com",
            "interval_minutes": 30, "interval_type": "minutes", "schedule_enabled": true,
            "max_retries": 3, "retry_backoff_seconds": 60, "metadata": {"category": "news"},
        }))),
        ("Call a service on weekdays at 9:00" = (value = json!({
            "name": "report", "schedule": {"kind": "cron", "expression": "0 9 * * 1-5"},
            "timezone": "America/Toronto", "executor_type": "http",
            "executor_config": {"url": "https://example.com/report", "method": "POST"},
        }))),
        ("Run once, now" = (value = json!({
            "source_id": "news-site", "source_name": "example.com", "url": "https://example.com",
            "schedule_enabled": false,
        }))),
        ("Crawl now, unless the same crawl is queued or running" = (value = json!({
            "source_id": "news-site", "source_name": "example.com", "url": "https://example.com",
            "schedule_enabled": false, "unique": true, "dedup_scope": "pending_or_running",
        }))),
    )),
    responses(
        (status = 201, description = "The job", body = JobView,
         headers(("Location" = String, description = "Path of the new resource"),
                 ("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 200, description = "A job with the same dedup_key exists and is returned; nothing was \
         created, and `deduplicated` is true", body = JobView,
         headers(("Location" = String, description = "Path of the new resource"),
                 ("ETag" = String, description = "Version of the job, for If-Match"))),
        (status = 409, description = "Another job has the name"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn create_job(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let CreatedJob { job, now, deduplicated } =
        call.jobs.create_or_find(call.scope(), &document).await?;
    let place = HeaderValue::try_from(format!("/api/v1/jobs/{}", job.id))
        .unwrap_or_else(|_| HeaderValue::from_static("/api/v1/jobs"));
    let headers = [(header::LOCATION, place), (header::ETAG, etag(job.generation))];
    let already_exists = deduplicated == Some(true);
    let status = if already_exists { StatusCode::OK } else { StatusCode::CREATED };
    let warnings = Some(warnings_of(&job)).filter(|warnings| !warnings.is_empty());
    let view = JobView::new(job, now, &call.run_ids);
    Ok((status, headers, Json(JobView { deduplicated, warnings, ..view })))
}
