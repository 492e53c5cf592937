//! `POST /api/v1/targets`

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use super::{TargetDocument, TargetView};
use crate::body::JsonBody;
use crate::call::Call;
use crate::etag::etag;
use crate::oversight;
use crate::problem::Problem;

/// Creates a target: a site or system that jobs work on.
///
/// A target alone runs nothing; jobs refer to it.
#[utoipa::path(
    post, path = "/api/v1/targets", tag = "targets",
    request_body(content = TargetDocument,
        example = json!({"name": "AskReddit", "url": "https://example.com/r/AskReddit"})),
    responses(
        (status = 201, description = "The target", body = TargetView,
         headers(("ETag" = String, description = "Version of the target, for If-Match"),
                 ("Location" = String, description = "Path of the new resource"))),
        (status = 409, description = "Another target already has this number or this source_id"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn create_target(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let target = call.jobs.create_target(call.scope(), &document).await?;
    let (number, tag) = (target.number, etag(target.generation));
    let place = HeaderValue::try_from(format!("/api/v1/targets/{number}"))
        .unwrap_or_else(|_| HeaderValue::from_static("/api/v1/targets"));
    let headers = [(header::LOCATION, place), (header::ETAG, tag)];
    let view = Json(TargetView::new(target));
    let mut answer = (StatusCode::CREATED, headers, view).into_response();
    answer.extensions_mut().insert(oversight::Target(number.to_string()));
    Ok(answer)
}
