//! `GET /api/v1/api-keys`

use axum::Json;
use axum::extract::State;
use evenkeel_store::PageRequest;
use uuid::Uuid;

use super::ApiKeyView;
use crate::auth::Caller;
use crate::page::{PageQuery, list_answer};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

list_answer! {
    /// One page of API keys.
    ApiKeyList {
        /// The API keys, oldest first, including revoked keys.
        api_keys: ApiKeyView
    }
}

/// Lists the API keys of the caller's tenant, without their secrets.
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
    Ok(Json(ApiKeyList::new(&app, &request, page, ApiKeyView::from)))
}
