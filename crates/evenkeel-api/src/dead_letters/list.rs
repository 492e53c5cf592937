//! `GET /api/v1/dead-letters`

use axum::Json;
use evenkeel_store::{DeadCursor, DeadFilter, PageRequest};
use utoipa::IntoParams;

use super::view::DeadLetterView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};

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
    tag = "executions",
    params(PageQuery, DeadLetterQuery),
    responses((status = 200, description = "One page of the list", body = DeadLetterList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_dead_letters(call: Call, mut params: Params) -> Answer<DeadLetterList> {
    let request: PageRequest<DeadCursor> = PageQuery::take(&mut params);
    let query =
        DeadLetterQuery { job_id: params.text("job_id"), redriven: params.flag("redriven") };
    params.finish()?;
    let job = job_in_query(&call, query.job_id).await?;
    let filter = DeadFilter { job, redriven: query.redriven };
    let page = call.runs.list_dead(call.scope(), filter, request).await?;
    Ok(Json(DeadLetterList::new(&call, &request, page, |letter| {
        DeadLetterView::new(letter, &call.run_ids)
    })))
}
