//! `GET /api/v1/secrets`

use axum::Json;
use axum::extract::State;
use evenkeel_store::{Page, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::SecretView;
use crate::auth::Caller;
use crate::page::{PageQuery, SecretName};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of secrets.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SecretList {
    /// The secrets of this page by name, without their values.
    pub secrets: Vec<SecretView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Lists the secrets of the caller's tenant by name, without their values.
#[utoipa::path(
    get,
    path = "/api/v1/secrets",
    operation_id = "list_secrets",
    tag = "access",
    params(PageQuery),
    responses((status = 200, description = "A part of the list", body = SecretList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<SecretList>, Problem> {
    let PageRequest { limit, offset, after } = PageQuery::take(&mut params);
    params.finish()?;
    let request = PageRequest { limit, offset, after: after.map(|SecretName(name)| name) };
    let page = app.store.list_secrets(&caller.scope, request).await?;
    let Page { items, total, total_is_estimate, next } = page;
    Ok(Json(SecretList {
        secrets: items.into_iter().map(SecretView::from).collect(),
        total,
        total_is_estimate,
        limit,
        offset,
        next_cursor: app.cursor(next.map(SecretName)),
    }))
}
