//! `POST /api/v1/secret-rotations`

use axum::{Extension, Json};
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_store::SecretReach;
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::NoBody;
use crate::call::Call;
use crate::cursor::{SecretPosition, decode};
use crate::oversight::AuditSummary;
use crate::params::Params;
use crate::problem::Problem;

/// The result of a rotation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RotatedView {
    /// Number of secret values that were encrypted again.
    pub rotated: u64,
    /// Secrets that could not be decrypted because their key is missing on this server.
    pub unreadable: Vec<UnreadableSecretView>,
    /// Id of the key that encrypts new values from now on.
    pub key_id: Option<String>,
    /// Value of `cursor` for the next call; null if all secrets were handled.
    pub next_cursor: Option<String>,
}

/// A secret that could not be encrypted again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct UnreadableSecretView {
    /// Name of the secret.
    pub name: String,
    /// Why the secret could not be decrypted.
    pub message: String,
}

/// Encrypts secrets again with the newest encryption key of this server.
///
/// Each call handles up to 1,000 secrets of the caller's tenant; an administrator of the tenant
/// `default` rotates the secrets of all tenants. Repeat the call with `next_cursor` until it is
/// null.
#[utoipa::path(
    post, path = "/api/v1/secret-rotations", tag = "access",
    params(("cursor" = Option<String>, Query, description = "Continues a rotation: the `next_cursor` of the previous call")),
    responses(
        (status = 200, description = "The result", body = RotatedView),
        (status = 409, description = "The server has no key to encrypt secrets with"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn rotate_secrets(
    call: Call,
    mut params: Params,
    _: NoBody,
) -> Result<(Extension<AuditSummary>, Json<RotatedView>), Problem> {
    let after = params.parsed("cursor", |cursor| {
        let place = decode::<SecretPosition>(cursor, &call.run_ids);
        place.ok_or("is not a cursor of this list; send a next_cursor unchanged".into())
    });
    params.finish()?;
    let all = call.caller.tenant == DEFAULT_TENANT;
    let reach = if all { SecretReach::AllTenants } else { SecretReach::OwnTenant };
    let after = after.map(|SecretPosition(tenant, name)| (tenant, name));
    let done = call.secrets.rotate(call.scope(), reach, after).await?;
    let summary = AuditSummary(format!("{} encrypted again", done.resealed));
    let unreadable = done.unreadable.into_iter().map(|(name, error)| {
        let message = error.to_string();
        UnreadableSecretView { name, message }
    });
    Ok((
        Extension(summary),
        Json(RotatedView {
            rotated: done.resealed,
            unreadable: unreadable.collect(),
            key_id: call.secrets.newest_key().map(Into::into),
            next_cursor: call.cursor(done.next.map(|(tenant, name)| SecretPosition(tenant, name))),
        }),
    ))
}
