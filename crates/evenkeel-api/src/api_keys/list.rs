//! `GET /api/v1/api-keys`

use axum::Json;
use uuid::Uuid;

use super::ApiKeyView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, Paged, list_answer};

list_answer! {
    /// One page of API keys.
    ApiKeyList {
        /// The API keys, oldest first, including revoked keys.
        api_keys: ApiKeyView
    }
}

/// Lists the API keys of the caller's tenant, without their secrets.
#[utoipa::path(
    get, path = "/api/v1/api-keys", tag = "access",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = ApiKeyList)),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn list_api_keys(call: Call, Paged(request): Paged<Uuid>) -> Answer<ApiKeyList> {
    let page = call.store.list_keys(call.scope(), request).await?;
    Ok(Json(ApiKeyList::new(&call, &request, page, ApiKeyView::new)))
}
