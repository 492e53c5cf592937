//! `GET /api/v1/secrets/{name}`

use axum::Json;
use axum::extract::State;

use super::{SecretView, missing};
use crate::auth::Caller;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Returns a secret without its value.
#[utoipa::path(
    get,
    path = "/api/v1/secrets/{name}",
    operation_id = "get_secret",
    tag = "access",
    params(("name" = String, Path, description = "Name of the secret")),
    responses((status = 200, description = "The secret, without its value", body = SecretView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathId(name): PathId,
    _: NoParams,
) -> Result<Json<SecretView>, Problem> {
    // PostgreSQL cannot compare text that contains NUL.
    if name.contains('\0') {
        return Err(missing());
    }
    let found = app.store.get_secret(&caller.scope, &name).await?;
    found.map(|info| Json(SecretView::from(info))).ok_or_else(missing)
}
