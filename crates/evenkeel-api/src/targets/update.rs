//! `PUT /api/v1/targets/{id}` and `PATCH /api/v1/targets/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use serde_json::Value;

use super::{TargetView, read_number};
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::etag::{etag, if_match};
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Changes a target. Send what was shown, edited, or some fields of it: what is left out stays, null
/// takes away. Jobs that crawl its url because they name it crawl the new one from then on; when it
/// is taken away, their runs fail with `no_executor`.
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
    request_body(content = Object, description = "Fields of a target",
        example = json!({"url": "https://example.com/r/worldnews"})),
    responses(
        (status = 200, description = "The target as it is now", body = TargetView,
         headers(("ETag" = String, description = "Names this version of the target"))),
        (status = 404, description = "There is no such target", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "Another target has the source_id", body = Problem,
         content_type = "application/problem+json"),
        (status = 412, description = "The target was changed meanwhile", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "A field is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    params: Params,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    params.finish()?;
    update(&app, &caller, &id, &headers, &sent).await
}

/// Changes some fields of a target: what is left out stays, null takes away. The same as `PUT`, for
/// programs that speak of merge patches (RFC 7396).
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
    request_body(content = Object, description = "The fields to change",
        example = json!({"name": "WorldNews"})),
    responses(
        (status = 200, description = "The target as it is now", body = TargetView,
         headers(("ETag" = String, description = "Names this version of the target"))),
        (status = 404, description = "There is no such target", body = Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "Another target has the source_id", body = Problem,
         content_type = "application/problem+json"),
        (status = 412, description = "The target was changed meanwhile", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "A field is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    params: Params,
    headers: HeaderMap,
    JsonBody(sent): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    params.finish()?;
    update(&app, &caller, &id, &headers, &sent).await
}

async fn update(
    app: &App,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    sent: &Value,
) -> Result<impl IntoResponse + use<>, Problem> {
    let (number, meant) = (read_number(id)?, if_match(headers));
    let target = app.jobs.update_target(&caller.scope, number, sent, meant.as_deref()).await?;
    Ok(([(header::ETAG, etag(target.generation))], Json(TargetView::from(target))))
}
