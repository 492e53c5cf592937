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

/// One page of API keys.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ApiKeyList {
    /// The keys, oldest first, including revoked keys.
    pub api_keys: Vec<ApiKeyView>,
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

/// Lists the API keys of the caller's tenant, without the keys themselves.
#[utoipa::path(
    get,
    path = "/api/v1/api-keys",
    operation_id = "list_api_keys",
    tag = "access",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = ApiKeyList)),
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
