//! `GET /api/v1/executions` and `GET /api/v1/jobs/{id}/executions`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::RunSearch;
use evenkeel_core::run::AttemptStatus;
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

/// A part of a list of executions.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct ExecutionList {
    /// What is on it, newest first.
    pub executions: Vec<ExecutionView>,
    /// How many there are on all pages.
    pub total: u64,
    /// Is that only roughly right?
    pub total_is_estimate: bool,
    /// How many were asked for.
    pub limit: u32,
    /// How many were left out first.
    pub offset: u32,
    /// The `cursor` of the next page, if there is one.
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

/// Which executions.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionQuery {
    /// Only those that stand so.
    #[param(value_type = Option<String>, example = "failed", pattern =
        "^(pending|running|completed|failed|cancelled|timed_out|skipped|partly_failed|superseded)$")]
    status: Option<AttemptStatus>,
    /// Only those for this time or a later one.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-01T00:00:00Z")]
    from: Option<Timestamp>,
    /// Only those for an earlier time.
    #[param(value_type = Option<String>, format = DateTime, example = "2026-12-02T00:00:00Z")]
    before: Option<Timestamp>,
}

impl ExecutionQuery {
    fn take(params: &mut Params, job: Option<JobId>) -> RunSearch {
        let words = AttemptStatus::ALL.map(|status| (status.as_str(), status));
        let query = Self {
            status: params.word("status", &words),
            from: params.time("from"),
            before: params.time("before"),
        };
        RunSearch { job, status: query.status, from: query.from, before: query.before }
    }
}

/// The executions of all jobs, newest first. With a filter, a page looks at a bounded number of
/// executions: it may have fewer than were asked for and still a `next_cursor`.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    operation_id = "list_executions",
    tag = "executions",
    params(PageQuery, ExecutionQuery),
    responses((status = 200, description = "A part of the list", body = ExecutionList)),
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

/// The executions of one job, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/executions",
    operation_id = "list_job_executions",
    tag = "executions",
    params(("id" = String, Path, description = "The job's id or name"), PageQuery, ExecutionQuery),
    responses((status = 200, description = "A part of the list", body = ExecutionList)),
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
