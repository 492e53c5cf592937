//! `GET /api/v1/secrets/{name}`

use axum::Json;

use super::{SecretView, missing};
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};

/// Returns a secret without its value.
#[utoipa::path(
    get, path = "/api/v1/secrets/{name}", tag = "access",
    params(("name" = String, Path, description = "Name of the secret")),
    responses((status = 200, description = "The secret, without its value", body = SecretView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_secret(
    call: Call,
    PathId(name): PathId,
    _: NoParams,
) -> Answer<SecretView> {
    // PostgreSQL cannot compare text that contains NUL.
    if name.contains('\0') {
        return Err(missing());
    }
    let found = call.store.get_secret(call.scope(), &name).await?;
    found.map(|info| Json(SecretView::new(info))).ok_or_else(missing)
}
