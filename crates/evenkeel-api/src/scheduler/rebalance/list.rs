//! `GET /api/v1/scheduler/rebalances`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::CommandError;
use evenkeel_store::{Page, PageRequest};

use super::view::RebalanceView;
use crate::auth::Caller;
use crate::cursor::RebalanceCursor;
use crate::page::{PageQuery, list_answer};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

list_answer! {
    /// One page of rebalances.
    RebalanceList {
        /// The rebalances, newest first.
        rebalances: RebalanceView
    }
}

/// Lists the rebalances that were started, newest first. Plans that were not started are not
/// included.
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
            Problem::parameter("cursor", "is no longer valid; start again with the first page")
        }
        error => error.into(),
    })?;
    let Page { items, total, total_is_estimate, next } = page;
    let items = items.iter().map(RebalanceView::of).collect::<Result<Vec<_>, _>>()?;
    let page = Page { items, total, total_is_estimate, next: next.map(RebalanceCursor) };
    Ok(Json(RebalanceList::new(&app, &request, page, |view| view)))
}
