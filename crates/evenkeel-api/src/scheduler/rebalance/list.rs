//! `GET /api/v1/scheduler/rebalances`

use axum::Json;
use evenkeel_commands::CommandError;
use evenkeel_store::{Page, PageRequest};

use super::view::RebalanceView;
use crate::call::{Answer, Call};
use crate::cursor::RebalanceCursor;
use crate::page::{PageQuery, Paged, list_answer};
use crate::problem::Problem;

list_answer! {
    /// One page of rebalances.
    RebalanceList {
        /// The rebalances, newest first.
        rebalances: RebalanceView
    }
}

/// Lists the rebalances that were started, newest first. The list does not include plans that were
/// not started.
#[utoipa::path(
    get, path = "/api/v1/scheduler/rebalances", tag = "balance",
    params(PageQuery),
    responses((status = 200, description = "One page of the list", body = RebalanceList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_rebalances(
    call: Call,
    Paged(request): Paged<RebalanceCursor>,
) -> Answer<RebalanceList> {
    let PageRequest { limit, offset, after } = request;
    let page = PageRequest { limit, offset, after: after.map(|cursor| cursor.0) };
    let page = call.balancing.list(call.scope(), page).await.map_err(|error| match error {
        CommandError::NotFound => {
            Problem::parameter("cursor", "is no longer valid; start again with the first page")
        }
        error => error.into(),
    })?;
    let Page { items, total, total_is_estimate, next } = page;
    let items = items.iter().map(RebalanceView::of).collect::<Result<Vec<_>, _>>()?;
    let page = Page { items, total, total_is_estimate, next: next.map(RebalanceCursor) };
    Ok(Json(RebalanceList::new(&call, &request, page, |view| view)))
}
