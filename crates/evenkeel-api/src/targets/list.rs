//! `GET /api/v1/targets`

use axum::Json;
use axum::extract::State;
use evenkeel_store::PageRequest;
use serde::Serialize;
use utoipa::ToSchema;

use super::TargetView;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of targets.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct TargetList {
    /// What is on it, by number.
    pub targets: Vec<TargetView>,
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

/// The targets of the caller's tenant.
#[utoipa::path(
    get,
    path = "/api/v1/targets",
    operation_id = "list_targets",
    tag = "targets",
    params(PageQuery),
    responses((status = 200, description = "A part of the list", body = TargetList)),
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
    Ok(Json(TargetList {
        targets: page
            .items
            .into_iter()
            .map(|target| TargetView::from(target).for_role(caller.scope.role))
            .collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
