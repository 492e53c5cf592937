//! `DELETE /api/v1/api-keys/{id}`

use axum::Json;
use axum::extract::State;
use evenkeel_store::Now;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// A revoked API key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RevokedApiKeyView {
    /// Id of the key.
    pub id: Uuid,
    /// Always true.
    pub revoked: bool,
}

/// Revokes an API key permanently.
///
/// All nodes reject the revoked key as soon as the request is answered.
#[utoipa::path(
    delete,
    path = "/api/v1/api-keys/{id}",
    operation_id = "revoke_api_key",
    tag = "access",
    params(("id" = uuid::Uuid, Path, description = "Id of the key")),
    responses(
        (status = 200, description = "The API key is revoked", body = RevokedApiKeyView),
        (status = 404, description = "The API key does not exist or is already revoked"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<Json<RevokedApiKeyView>, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, "there is no such API key");
    let id: Uuid = id.parse().map_err(|_| missing())?;
    let revoked = app.store.revoke_key(&caller.scope, id, Now::Database).await?;
    if revoked { Ok(Json(RevokedApiKeyView { id, revoked })) } else { Err(missing()) }
}
