//! `GET /api/v1/secrets`

use axum::Json;
use axum::extract::State;
use evenkeel_store::PageRequest;

use super::SecretView;
use crate::auth::Caller;
use crate::cursor::SecretName;
use crate::page::{PageQuery, list_answer, map_next};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

list_answer! {
    /// One page of secrets.
    SecretList {
        /// The secrets sorted by name, without their values.
        secrets: SecretView
    }
}

/// Lists the secrets of the caller's tenant, sorted by name, without their values.
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
    let request: PageRequest<SecretName> = PageQuery::take(&mut params);
    params.finish()?;
    let PageRequest { limit, offset, after } = request.clone();
    let by_name = PageRequest { limit, offset, after: after.map(|SecretName(name)| name) };
    let page = app.store.list_secrets(&caller.scope, by_name).await?;
    Ok(Json(SecretList::new(&app, &request, map_next(page, SecretName), SecretView::from)))
}
