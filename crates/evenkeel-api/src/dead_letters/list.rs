//! `GET /api/v1/dead-letters`

use axum::Json;
use axum::extract::State;
use evenkeel_store::{DeadCursor, DeadFilter, PageRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::view::DeadLetterView;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::{Params, job_in_query};
use crate::problem::Problem;
use crate::state::App;

/// One page of dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeadLetterList {
    /// The dead letters, newest first.
    pub dead_letters: Vec<DeadLetterView>,
    /// Number of dead letters on all pages, counted up to 10,000.
    pub total: u64,
    /// True if there are more than 10,000.
    pub total_is_estimate: bool,
    /// The page size: the `limit` of the request.
    pub limit: u32,
    /// Number of items skipped before this page: the `offset` of the request.
    pub offset: u32,
    /// The `cursor` that fetches the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Filters of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterQuery {
    /// Only dead letters of this job (its id or name).
    job_id: Option<String>,
    /// True: only redriven letters. False: only those not yet redriven.
    redriven: Option<bool>,
}

/// Lists dead letters, newest first: failed runs of jobs with `"on_failure": {"action":
/// "dead_letter"}`.
///
/// They are kept for 30 days, and at most 10,000 per tenant.
#[utoipa::path(
    get,
    path = "/api/v1/dead-letters",
    operation_id = "list_dead_letters",
    tag = "executions",
    params(PageQuery, DeadLetterQuery),
    responses((status = 200, description = "One page of the list", body = DeadLetterList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<DeadLetterList>, Problem> {
    let request: PageRequest<DeadCursor> = PageQuery::take(&mut params);
    let query =
        DeadLetterQuery { job_id: params.text("job_id"), redriven: params.flag("redriven") };
    params.finish()?;
    let job = job_in_query(&app, &caller, query.job_id).await?;
    let filter = DeadFilter { job, redriven: query.redriven };
    let page = app.runs.list_dead(&caller.scope, filter, request).await?;
    Ok(Json(DeadLetterList {
        dead_letters: page
            .items
            .into_iter()
            .map(|letter| DeadLetterView::new(letter, &app.run_ids))
            .collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
