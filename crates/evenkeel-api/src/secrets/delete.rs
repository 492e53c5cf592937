//! `DELETE /api/v1/secrets/{name}`

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::missing;
use crate::body::NoBody;
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};

/// A deleted secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedSecretView {
    /// Name of the secret.
    pub name: String,
    /// Always true.
    pub deleted: bool,
}

/// Deletes a secret.
///
/// Jobs that refer to the secret stay, but their attempts fail with an error that names the secret,
/// until it is set again.
#[utoipa::path(
    delete, path = "/api/v1/secrets/{name}", tag = "access",
    params(("name" = String, Path, description = "Name of the secret")),
    responses((status = 200, description = "The deleted secret", body = DeletedSecretView)),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn delete_secret(
    call: Call,
    PathId(name): PathId,
    _: NoParams,
    _: NoBody,
) -> Answer<DeletedSecretView> {
    let is_name = evenkeel_core::secret::is_name(&name);
    let deleted = is_name && call.store.delete_secret(call.scope(), &name).await?;
    if deleted { Ok(Json(DeletedSecretView { name, deleted })) } else { Err(missing()) }
}
