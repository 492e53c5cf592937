//! `DELETE /api/v1/api-keys/{id}`

use axum::Json;
use evenkeel_store::Now;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::body::NoBody;
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};

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
/// All nodes reject the revoked key as soon as the server has answered the revoke request.
#[utoipa::path(
    delete, path = "/api/v1/api-keys/{id}", tag = "access",
    params(("id" = uuid::Uuid, Path, description = "Id of the key")),
    responses(
        (status = 200, description = "The API key is revoked", body = RevokedApiKeyView),
        (status = 404, description = "The API key does not exist or is already revoked"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn revoke_api_key(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Answer<RevokedApiKeyView> {
    let missing = || Problem::new(ProblemType::NotFound, "there is no such API key");
    let id: Uuid = id.parse().map_err(|_| missing())?;
    let revoked = call.store.revoke_key(call.scope(), id, Now::Database).await?;
    if revoked { Ok(Json(RevokedApiKeyView { id, revoked })) } else { Err(missing()) }
}
