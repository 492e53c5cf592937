//! `POST /api/v1/secret-rotations`

use axum::extract::State;
use axum::{Extension, Json};
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_store::SecretReach;
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::NoBody;
use crate::oversight::Deed;
use crate::page::{SecretPlace, decode};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// What a rotation has done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RotatedView {
    /// How many values were encrypted anew.
    pub rotated: u64,
    /// Secrets that stay under another key, because it is not here.
    pub unreadable: Vec<UnreadableSecretView>,
    /// The key that encrypts now.
    pub key_id: Option<String>,
    /// The `cursor` to go on with, if there may be more.
    pub next_cursor: Option<String>,
}

/// A secret that could not be encrypted anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct UnreadableSecretView {
    /// Its name.
    pub name: String,
    /// Why it could not be read.
    pub message: String,
}

/// Encrypts secrets anew with the newest key of this server: those of the caller's tenant, or of all
/// tenants for an administrator of the tenant `default`. Looks at no more than 1,000 of them; call it
/// again with `next_cursor` until there is none.
#[utoipa::path(
    post,
    path = "/api/v1/secret-rotations",
    operation_id = "rotate_secrets",
    tag = "access",
    params(("cursor" = Option<String>, Query, description = "Going on where another call ended")),
    responses(
        (status = 200, description = "What was done", body = RotatedView),
        (status = 409, description = "The server has no key to encrypt secrets with"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
    _: NoBody,
) -> Result<(Extension<Deed>, Json<RotatedView>), Problem> {
    let after = params.text("cursor").and_then(|cursor| {
        let place = decode::<SecretPlace>(&cursor, &params.run_ids);
        if place.is_none() {
            params.fault("cursor", "is not a cursor; send a next_cursor as it was");
        }
        place
    });
    params.finish()?;
    let all = caller.tenant == DEFAULT_TENANT;
    let reach = if all { SecretReach::AllTenants } else { SecretReach::OwnTenant };
    let after = after.map(|SecretPlace(tenant, name)| (tenant, name));
    let done = app.secrets.rotate(&caller.scope, reach, after).await?;
    let deed = Deed(format!("{} encrypted anew", done.resealed));
    let unreadable = done.unreadable.into_iter().map(|(name, error)| {
        let message = error.to_string();
        UnreadableSecretView { name, message }
    });
    Ok((
        Extension(deed),
        Json(RotatedView {
            rotated: done.resealed,
            unreadable: unreadable.collect(),
            key_id: app.secrets.newest_key().map(Into::into),
            next_cursor: app.cursor(done.next.map(|(tenant, name)| SecretPlace(tenant, name))),
        }),
    ))
}
