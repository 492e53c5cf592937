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

/// A part of the list of dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeadLetterList {
    /// What is on it, newest first.
    pub dead_letters: Vec<DeadLetterView>,
    /// How many there are on all pages, counted up to 10,000.
    pub total: u64,
    /// Are there more than that?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Which letters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterQuery {
    /// Only those of this job (its id or name).
    job_id: Option<String>,
    /// Only those that were taken up again, or only those that were not.
    redriven: Option<bool>,
}

/// Runs that failed for good, of jobs with `"on_failure": {"action": "dead_letter"}`, newest first.
/// They are kept for 30 days, and the newest 10,000 of each tenant.
#[utoipa::path(
    get,
    path = "/api/v1/dead-letters",
    operation_id = "list_dead_letters",
    tag = "executions",
    params(PageQuery, DeadLetterQuery),
    responses((status = 200, description = "A part of the list", body = DeadLetterList)),
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
