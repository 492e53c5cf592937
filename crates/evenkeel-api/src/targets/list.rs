//! `GET /api/v1/targets`

use axum::Json;
use axum::extract::State;
use evenkeel_store::PageRequest;

use super::TargetView;
use crate::auth::Caller;
use crate::page::{PageQuery, list_answer};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

list_answer! {
    /// One page of targets.
    TargetList {
        /// The targets, sorted by number.
        targets: TargetView
    }
}

/// Lists the targets of the caller's tenant.
#[utoipa::path(
    get,
    path = "/api/v1/targets",
    operation_id = "list_targets",
    tag = "targets",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = TargetList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<TargetList>, Problem> {
    let request: PageRequest<i64> = PageQuery::take(&mut params);
    params.finish()?;
    let page = app.jobs.list_targets(&caller.scope, request).await?;
    Ok(Json(TargetList::new(&app, &request, page, |target| {
        TargetView::from(target).for_role(caller.scope.role)
    })))
}
