//! `GET /api/v1/secrets`

use axum::Json;
use evenkeel_store::PageRequest;

use super::SecretView;
use crate::call::{Answer, Call};
use crate::cursor::SecretName;
use crate::page::{PageQuery, Paged, list_answer, map_next};

list_answer! {
    /// One page of secrets.
    SecretList {
        /// The secrets sorted by name, without their values.
        secrets: SecretView
    }
}

/// Lists the secrets of the caller's tenant, sorted by name, without their values.
#[utoipa::path(
    get, path = "/api/v1/secrets", tag = "access",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = SecretList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_secrets(
    call: Call,
    Paged(request): Paged<SecretName>,
) -> Answer<SecretList> {
    let PageRequest { limit, offset, after } = request.clone();
    let by_name = PageRequest { limit, offset, after: after.map(|SecretName(name)| name) };
    let page = call.store.list_secrets(call.scope(), by_name).await?;
    Ok(Json(SecretList::new(&call, &request, map_next(page, SecretName), SecretView::new)))
}
