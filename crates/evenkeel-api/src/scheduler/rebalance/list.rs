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

/// A part of the list of rebalances.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RebalanceList {
    /// What is on it, newest first.
    pub rebalances: Vec<RebalanceView>,
    /// How many there are.
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

/// The rebalances that moved something or do, newest first. Plans that were only shown are not
/// among them.
#[utoipa::path(
    get,
    path = "/api/v1/scheduler/rebalances",
    operation_id = "list_rebalances",
    tag = "balance",
    params(PageQuery),
    responses((status = 200, description = "A part of the list", body = RebalanceList)),
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
