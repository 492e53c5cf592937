//! `PUT /api/v1/targets/{id}` and `PATCH /api/v1/targets/{id}`

use axum::Json;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use evenkeel_commands::{EditMode, FollowerUpdate};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{TargetChange, TargetView, read_number};
use crate::body::JsonBody;
use crate::call::Call;
use crate::etag::{etag, if_match};
use crate::params::PathId;
use crate::problem::Problem;

/// A target after a change.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ChangedTargetView {
    #[serde(flatten)]
    pub target: TargetView,
    /// Number of jobs that now crawl the new URL of the target, or have no URL because the target's
    /// URL was removed.
    pub followed_jobs: u64,
    /// Number of jobs that crawl the target's URL but keep the old URL, because the new URL does
    /// not fit their `executor_config` or `payload`, or because another job has the resulting
    /// deduplication key.
    pub refused_jobs: u64,
    /// True if more than 500 jobs crawl the target's URL; the server updates the remaining jobs in
    /// the background and does not count them here.
    pub goes_on: bool,
}

/// Changes a target.
///
/// Send the target as returned by `GET` with edited fields, or only the fields to change. Fields
/// that are missing in the request keep their values; null removes a value. Jobs that have this
/// target, but neither `url` nor `executor_type`, crawl the new URL from now on. If the target's
/// URL is removed, runs of jobs that crawled it fail with `no_executor`. The server updates the
/// jobs even if the target already has the new values, so an interrupted request can be repeated.
#[utoipa::path(
    put, path = "/api/v1/targets/{id}", tag = "targets",
    params(
        ("id" = i64, Path, description = "Number of the target"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the target still has this ETag; * allows any version"),
    ),
    request_body(content = TargetChange, description = "Fields of a target",
        example = json!({"url": "https://example.com/r/worldnews"})),
    responses(
        (status = 200, description = "The target after the change", body = ChangedTargetView,
         headers(("ETag" = String, description = "Version of the target, for If-Match"))),
        (status = 409, description = "Another target already has this source_id"),
        (status = 412, description = "The target has changed since this ETag"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn update_target(
    call: Call,
    PathId(id): PathId,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&call, &id, &headers, (&sent, EditMode::Put)).await
}

/// Changes some fields of a target by a JSON merge patch (RFC 7396).
///
/// `PATCH` works like `PUT`, but refuses changes of read-only fields instead of ignoring them.
#[utoipa::path(
    patch, path = "/api/v1/targets/{id}", tag = "targets",
    params(
        ("id" = i64, Path, description = "Number of the target"),
        ("If-Match" = Option<String>, Header,
         description = "Apply only if the target still has this ETag; * allows any version"),
    ),
    request_body(content = TargetChange, description = "The fields to change",
        example = json!({"name": "WorldNews"})),
    responses(
        (status = 200, description = "The target after the change", body = ChangedTargetView,
         headers(("ETag" = String, description = "Version of the target, for If-Match"))),
        (status = 409, description = "Another target already has this source_id"),
        (status = 412, description = "The target has changed since this ETag"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn patch_target(
    call: Call,
    PathId(id): PathId,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&call, &id, &headers, (&sent, EditMode::Patch)).await
}

async fn update(
    call: &Call,
    id: &str,
    headers: &HeaderMap,
    sent: (&Value, EditMode),
) -> Result<impl IntoResponse + use<>, Problem> {
    let (number, generations) = (read_number(id)?, if_match(headers));
    let changed = call.jobs.update_target(call.scope(), number, sent, generations.as_deref());
    let (target, FollowerUpdate { followed, refused, continues: goes_on }) = changed.await?;
    let tag = etag(target.generation);
    let view = ChangedTargetView {
        target: TargetView::new(target),
        followed_jobs: followed,
        refused_jobs: refused,
        goes_on,
    };
    Ok(([(header::ETAG, tag)], Json(view)))
}
