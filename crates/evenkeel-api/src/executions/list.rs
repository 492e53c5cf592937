//! `GET /api/v1/executions` and `GET /api/v1/jobs/{id}/executions`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::RunSearch;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{Attempt, Page, PageRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::ExecutionView;
use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::{Params, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// One page of executions.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionList {
    /// The executions, newest first.
    pub executions: Vec<ExecutionView>,
    /// Number of items on all pages together.
    pub total: u64,
    /// True if `total` is an estimate.
    pub total_is_estimate: bool,
    /// The page size: the `limit` of the request.
    pub limit: u32,
    /// Number of items skipped before this page: the `offset` of the request.
    pub offset: u32,
    /// The `cursor` that fetches the next page; null on the last page.
    pub next_cursor: Option<String>,
}

impl ExecutionList {
    fn new(page: Page<Attempt, AttemptKey>, request: PageRequest<AttemptKey>, app: &App) -> Self {
        let view = |attempt| ExecutionView::new(attempt, &app.run_ids);
        Self {
            executions: page.items.into_iter().map(view).collect(),
            total: page.total,
            total_is_estimate: page.total_is_estimate,
            limit: request.limit,
            offset: request.offset,
            next_cursor: app.cursor(page.next),
        }
    }
}

/// Filters of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionQuery {
    /// Only executions with this status.
    #[param(value_type = Option<String>, example = "failed", pattern =
        "^(pending|running|completed|failed|cancelled|timed_out|skipped|partly_failed|superseded)$")]
    status: Option<AttemptStatus>,
    /// Only executions scheduled at or after this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T00:00:00Z")]
    from: Option<Timestamp>,
    /// Only executions scheduled before this time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-02T00:00:00Z")]
    before: Option<Timestamp>,
}

impl ExecutionQuery {
    fn take(params: &mut Params, job: Option<JobId>) -> RunSearch {
        let words = AttemptStatus::ALL.map(|status| (status.as_str(), status));
        let query = Self {
            status: params.choice("status", &words),
            from: params.time("from"),
            before: params.time("before"),
        };
        RunSearch { job, status: query.status, from: query.from, before: query.before }
    }
}

/// Lists the executions of all jobs, newest first.
///
/// With a filter, a page examines a bounded number of executions: it may have fewer than `limit`
/// and still a `next_cursor`.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    operation_id = "list_executions",
    tag = "executions",
    params(PageQuery, ExecutionQuery),
    responses((status = 200, description = "One page of the list", body = ExecutionList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ExecutionList>, Problem> {
    let request = PageQuery::take(&mut params);
    let search = ExecutionQuery::take(&mut params, None);
    params.finish()?;
    let page = app.runs.search(&caller.scope, search, request).await?;
    Ok(Json(ExecutionList::new(page, request, &app)))
}

/// Lists the executions of one job, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/executions",
    operation_id = "list_job_executions",
    tag = "executions",
    params(("id" = String, Path, description = "The job's id or name"), PageQuery, ExecutionQuery),
    responses((status = 200, description = "One page of the list", body = ExecutionList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_of_job(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    mut params: Params,
) -> Result<Json<ExecutionList>, Problem> {
    let request = PageQuery::take(&mut params);
    let search = ExecutionQuery::take(&mut params, Some(id));
    params.finish()?;
    let page = app.runs.search(&caller.scope, search, request).await?;
    Ok(Json(ExecutionList::new(page, request, &app)))
}
