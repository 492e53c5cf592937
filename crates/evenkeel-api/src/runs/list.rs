//! `GET /api/v1/runs`

use axum::Json;
use evenkeel_commands::RunSearch;
use evenkeel_core::Timestamp;
use evenkeel_core::attempt::AttemptStatus;
use utoipa::IntoParams;

use super::RunView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};

list_answer! {
    /// One page of runs.
    RunList {
        /// The runs, newest first.
        runs: RunView
    }
}

/// Filters of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters, which are read by name")]
pub(crate) struct RunQuery {
    /// Lists only runs of this job, given by id or name.
    #[param(example = "news/daily")]
    job: Option<String>,
    /// Lists only runs with this status.
    #[param(value_type = Option<String>, example = "failed", pattern =
        "^(pending|running|completed|failed|cancelled|timed_out|skipped|partly_failed|superseded)$")]
    status: Option<AttemptStatus>,
    /// Lists only runs whose scheduled time is at or after this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T00:00:00Z")]
    since: Option<Timestamp>,
    /// Lists only runs whose scheduled time is before this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-02T00:00:00Z")]
    until: Option<Timestamp>,
}

/// Lists runs with their attempts, newest first.
///
/// A run is one scheduled time, trigger, redrive or backfill of a job. The runs of all jobs are
/// sorted by scheduled time; the runs of one `job` by the time at which they were fired. A record
/// of skipped times has the status `skipped`. A triggered run is listed as soon as it is queued.
///
/// Each request examines a limited number of attempts, so a page may have fewer items than `limit`
/// although `next_cursor` is set. `total` is exact only if the list has one page.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "executions",
    params(PageQuery, RunQuery),
    responses(
        (status = 200, description = "One page of the list", body = RunList),
        (status = 404, description = "There is no job with this id or name"),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_runs(call: Call, mut params: Params) -> Answer<RunList> {
    let request = PageQuery::take(&mut params);
    let statuses = AttemptStatus::ALL.map(|status| (status.as_str(), status));
    let job = params.text("job");
    let search = RunSearch {
        job: None,
        status: params.choice("status", &statuses),
        from: params.time("since"),
        before: params.time("until"),
    };
    params.finish()?;
    let search = RunSearch { job: job_in_query(&call, job).await?, ..search };
    let page = call.runs.runs(call.scope(), search, request).await?;
    Ok(Json(RunList::new(&call, &request, page, |run| RunView::new(run, &call.run_ids))))
}
