//! `GET /api/v1/dead-letters`

use axum::Json;
use axum::extract::State;
use evenkeel_store::{DeadCursor, DeadFilter, PageRequest};
use utoipa::IntoParams;

use super::view::DeadLetterView;
use crate::auth::Caller;
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};
use crate::problem::Problem;
use crate::state::App;

list_answer! {
    /// One page of dead letters.
    DeadLetterList {
        /// The dead letters, newest first.
        dead_letters: DeadLetterView
    }
}

/// Filters of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLetterQuery {
    /// Lists only dead letters of this job, given by id or name.
    job_id: Option<String>,
    /// `true` lists only dead letters that were redriven. `false` lists only dead letters that were
    /// not redriven yet.
    redriven: Option<bool>,
}

/// Lists dead letters, newest first. A failed run becomes a dead letter if its job has
/// `"on_failure": {"action": "dead_letter"}`.
///
/// Dead letters are kept for 30 days, and at most 10,000 per tenant.
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
    Ok(Json(DeadLetterList::new(&app, &request, page, |letter| {
        DeadLetterView::new(letter, &app.run_ids)
    })))
}
