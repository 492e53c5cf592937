//! `GET /api/v1/scheduler/rebalances`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::CommandError;
use evenkeel_store::PageRequest;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::RebalanceView;
use crate::auth::Caller;
use crate::page::{PageQuery, RebalanceCursor};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// One page of rebalances.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalanceList {
    /// The rebalances, newest first.
    pub rebalances: Vec<RebalanceView>,
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

/// Lists the rebalances that were started, newest first. Plans are not included.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalances",
    operation_id = "list_rebalances",
    tag = "balance",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = RebalanceList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_rebalances(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<RebalanceList>, Problem> {
    let request: PageRequest<RebalanceCursor> = PageQuery::take(&mut params);
    params.finish()?;
    let PageRequest { limit, offset, after } = request;
    let page = PageRequest { limit, offset, after: after.map(|cursor| cursor.0) };
    let page = app.balancing.list(&caller.scope, page).await.map_err(|error| match error {
        CommandError::NotFound => {
            Problem::parameter("cursor", "leads nowhere any more; begin the list anew")
        }
        error => error.into(),
    })?;
    let rebalances: Result<Vec<_>, _> = page.items.iter().map(RebalanceView::of).collect();
    Ok(Json(RebalanceList {
        rebalances: rebalances?,
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit,
        offset,
        next_cursor: app.cursor(page.next.map(RebalanceCursor)),
    }))
}
