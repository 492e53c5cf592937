//! `GET /api/v1/api-keys`

use axum::Json;
use axum::extract::State;
use evenkeel_store::PageRequest;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::ApiKeyView;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of API keys.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ApiKeyList {
    /// What is on it, oldest first; those that were revoked, too.
    pub api_keys: Vec<ApiKeyView>,
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

/// The API keys of the caller's tenant, without the keys themselves.
#[utoipa::path(
    get,
    path = "/api/v1/api-keys",
    operation_id = "list_api_keys",
    tag = "access",
    params(PageQuery),
    responses((status = 200, description = "A part of the list", body = ApiKeyList)),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ApiKeyList>, Problem> {
    let request: PageRequest<Uuid> = PageQuery::take(&mut params);
    params.finish()?;
    let page = app.store.list_keys(&caller.scope, request).await?;
    Ok(Json(ApiKeyList {
        api_keys: page.items.into_iter().map(ApiKeyView::from).collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
