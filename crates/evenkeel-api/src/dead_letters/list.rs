//! `GET /api/v1/dead-letters`

use axum::Json;
use evenkeel_store::{DeadCursor, DeadFilter, PageRequest};

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

/// Lists dead letters, newest first. A failed run becomes a dead letter if its job has
/// `"on_failure": {"action": "dead_letter"}`.
///
/// Dead letters are kept for 30 days, and at most 10,000 per tenant.
#[utoipa::path(
    get, path = "/api/v1/dead-letters", tag = "executions",
    params(
        PageQuery,
        ("job_id" = Option<String>, Query,
         description = "Lists only dead letters of this job, given by id or name."),
        ("redriven" = Option<bool>, Query,
         description = "`true` lists only dead letters that were redriven. `false` lists only dead letters that were\n\
            not redriven yet."),
    ),
    responses((status = 200, description = "One page of the list", body = DeadLetterList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_dead_letters(call: Call, mut params: Params) -> Answer<DeadLetterList> {
    let request: PageRequest<DeadCursor> = PageQuery::take(&mut params);
    let (job, redriven) = (params.text("job_id"), params.flag("redriven"));
    params.finish()?;
    let filter = DeadFilter { job: job_in_query(&call, job).await?, redriven };
    let page = call.store.list_dead(call.scope(), filter, request).await?;
    Ok(Json(DeadLetterList::new(&call, &request, page, |letter| {
        DeadLetterView::new(letter, &call.run_ids)
    })))
}
