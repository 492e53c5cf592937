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

/// One page of targets.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct TargetList {
    /// The targets, sorted by number.
    pub targets: Vec<TargetView>,
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
