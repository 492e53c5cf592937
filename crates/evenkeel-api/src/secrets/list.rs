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

/// One page of secrets.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SecretList {
    /// The secrets sorted by name, without their values.
    pub secrets: Vec<SecretView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// The page size: the `limit` of the request.
    pub limit: u32,
    /// Number of items skipped before this page: the `offset` of the request.
    pub offset: u32,
    /// The `cursor` that fetches the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Lists the secrets of the caller's tenant by name, without their values.
#[utoipa::path(
    get,
    path = "/api/v1/secrets",
    operation_id = "list_secrets",
    tag = "access",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = SecretList)),
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
