//! `GET /api/v1/executions` and `GET /api/v1/jobs/{id}/executions`

use axum::Json;
use evenkeel_commands::RunSearch;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{JobId, Timestamp};
use utoipa::IntoParams;

use super::ExecutionView;
use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, PathJob};

list_answer! {
    /// One page of executions.
    ExecutionList {
        /// The executions, newest first.
        executions: ExecutionView
    }
}

/// Filters of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters, which are read by name")]
pub(crate) struct ExecutionQuery {
    /// Lists only executions with this status.
    #[param(value_type = Option<String>, example = "failed", pattern =
        "^(pending|running|completed|failed|cancelled|timed_out|skipped|partly_failed|superseded)$")]
    status: Option<AttemptStatus>,
    /// Lists only executions whose scheduled time is at or after this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T00:00:00Z")]
    from: Option<Timestamp>,
    /// Lists only executions whose scheduled time is before this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-02T00:00:00Z")]
    before: Option<Timestamp>,
}

async fn search(call: Call, mut params: Params, job: Option<JobId>) -> Answer<ExecutionList> {
    let request = PageQuery::take(&mut params);
    let statuses = AttemptStatus::ALL.map(|status| (status.as_str(), status));
    let search = RunSearch {
        job,
        status: params.choice("status", &statuses),
        from: params.time("from"),
        before: params.time("before"),
    };
    params.finish()?;
    let page = call.runs.search(call.scope(), search, request).await?;
    let view = |attempt| ExecutionView::new(attempt, &call.run_ids);
    Ok(Json(ExecutionList::new(&call, &request, page, view)))
}

/// Lists the executions of all jobs, newest first.
///
/// With a filter, each request examines a limited number of executions, so a page may have fewer
/// items than `limit` although `next_cursor` is set.
#[utoipa::path(
    get, path = "/api/v1/executions", tag = "executions",
    params(PageQuery, ExecutionQuery),
    responses((status = 200, description = "One page of the list", body = ExecutionList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_executions(call: Call, params: Params) -> Answer<ExecutionList> {
    search(call, params, None).await
}

/// Lists the executions of one job, newest first.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/executions", tag = "executions",
    params(("id" = String, Path, description = "The job's id or name"), PageQuery, ExecutionQuery),
    responses((status = 200, description = "One page of the list", body = ExecutionList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_job_executions(
    call: Call,
    PathJob(id): PathJob,
    params: Params,
) -> Answer<ExecutionList> {
    search(call, params, Some(id)).await
}
