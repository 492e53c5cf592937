//! `GET /api/v1/targets/{id}`

use axum::Json;
use axum::http::header;
use axum::response::IntoResponse;

use super::{TargetView, read_number};
use crate::call::Call;
use crate::etag::etag;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// Returns a target.
#[utoipa::path(
    get, path = "/api/v1/targets/{id}", tag = "targets",
    params(("id" = i64, Path, description = "Number of the target")),
    responses(
        (status = 200, description = "The target", body = TargetView,
         headers(("ETag" = String, description = "Version of the target, for If-Match"))),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_target(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
) -> Result<impl IntoResponse, Problem> {
    let target = call.jobs.get_target(call.scope(), read_number(&id)?).await?;
    Ok((
        [(header::ETAG, etag(target.generation))],
        Json(TargetView::new(target).for_role(call.scope().role)),
    ))
}
