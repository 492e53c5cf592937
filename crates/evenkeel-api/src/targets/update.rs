//! `PUT /api/v1/targets/{id}` and `PATCH /api/v1/targets/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use evenkeel_commands::{Led, Manner};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{TargetChange, TargetView, read_number};
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::etag::{etag, if_match};
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// A target after a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ChangedTargetView {
    /// What it is now.
    #[serde(flatten)]
    pub target: TargetView,
    /// So many jobs that follow it crawl another url from now on, or none.
    pub followed_jobs: u64,
    /// So many jobs that follow it keep what they had: their `executor_config` or `payload` does not
    /// go with it, or another job holds the key that they would have.
    pub refused_jobs: u64,
    /// More than the first 500 follow it: they are told now, and not counted here.
    pub goes_on: bool,
}

/// Changes a target. Send what was shown, edited, or some fields of it: what is left out stays, null
/// takes away. Jobs that follow it, because they name neither a url nor an executor, crawl the new
/// url from then on; when it is taken away, their runs fail with `no_executor`. They are told even if
/// nothing is changed, so that whoever was interrupted can ask again.
#[utoipa::path(
    put,
    path = "/api/v1/targets/{id}",
    operation_id = "update_target",
    tag = "targets",
    params(
        ("id" = i64, Path, description = "The number of the target"),
        ("If-Match" = Option<String>, Header,
         description = "Only if the target has this ETag still; * for any"),
    ),
    request_body(content = TargetChange, description = "Fields of a target",
        example = json!({"url": "https://example.com/r/worldnews"})),
    responses(
        (status = 200, description = "The target as it is now", body = ChangedTargetView,
         headers(("ETag" = String, description = "Names this version of the target"))),
        (status = 409, description = "Another target has the source_id"),
        (status = 412, description = "The target was changed meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&app, &caller, &id, &headers, (&sent, Manner::Put)).await
}

/// Changes some fields of a target: what is left out stays, null takes away, as RFC 7396 has it. The
/// same as `PUT`, but that fields which only the server can say are refused.
#[utoipa::path(
    patch,
    path = "/api/v1/targets/{id}",
    operation_id = "patch_target",
    tag = "targets",
    params(
        ("id" = i64, Path, description = "The number of the target"),
        ("If-Match" = Option<String>, Header,
         description = "Only if the target has this ETag still; * for any"),
    ),
    request_body(content = TargetChange, description = "The fields to change",
        example = json!({"name": "WorldNews"})),
    responses(
        (status = 200, description = "The target as it is now", body = ChangedTargetView,
         headers(("ETag" = String, description = "Names this version of the target"))),
        (status = 409, description = "Another target has the source_id"),
        (status = 412, description = "The target was changed meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    update(&app, &caller, &id, &headers, (&sent, Manner::Patch)).await
}

async fn update(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    sent: (&Value, Manner),
) -> Result<impl IntoResponse + use<>, Problem> {
    let (number, meant) = (read_number(id)?, if_match(headers));
    let changed = app.jobs.update_target(&caller.scope, number, sent, meant.as_deref());
    let (target, Led { followed, refused, goes_on }) = changed.await?;
    let tag = etag(target.generation);
    let view = ChangedTargetView {
        target: target.into(),
        followed_jobs: followed,
        refused_jobs: refused,
        goes_on,
    };
    Ok(([(header::ETAG, tag)], Json(view)))
}
