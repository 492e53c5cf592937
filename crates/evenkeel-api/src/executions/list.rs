//! `GET /api/v1/executions` and `GET /api/v1/jobs/{id}/executions`

use axum::Json;
use axum::extract::State;
use evenkeel_core::RunKey;
use evenkeel_store::{Page, PageRequest, Run};
use serde::Serialize;
use utoipa::ToSchema;

use super::ExecutionView;
use crate::auth::Caller;
use crate::jobs::read_id;
use crate::page::{PageQuery, encode};
use crate::params::{Params, PathId};
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
    fn new(page: Page<Run, RunKey>, request: PageRequest<RunKey>) -> Self {
        Self {
            executions: page.items.into_iter().map(ExecutionView::from).collect(),
            total: page.total,
            total_is_estimate: page.total_is_estimate,
            limit: request.limit,
            offset: request.offset,
            next_cursor: page.next.map(encode),
        }
    }
}

/// The executions of all jobs, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    operation_id = "list_executions",
    tag = "executions",
    params(PageQuery),
    responses(
        (status = 200, description = "A part of the list", body = ExecutionList),
        (status = 422, description = "A parameter is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ExecutionList>, Problem> {
    let request = PageQuery::take(&mut params);
    params.finish()?;
    let page = app.runs.list(&caller.scope, request).await?;
    Ok(Json(ExecutionList::new(page, request)))
}

/// The executions of one job, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}/executions",
    operation_id = "list_job_executions",
    tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Which job"), PageQuery),
    responses(
        (status = 200, description = "A part of the list", body = ExecutionList),
        (status = 404, description = "There is no such job", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "A parameter is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_of_job(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    mut params: Params,
) -> Result<Json<ExecutionList>, Problem> {
    let request = PageQuery::take(&mut params);
    params.finish()?;
    let page = app.runs.list_of_job(&caller.scope, read_id(&id)?, request).await?;
    Ok(Json(ExecutionList::new(page, request)))
}
