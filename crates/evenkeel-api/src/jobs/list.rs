//! `GET /api/v1/jobs`

use axum::Json;
use axum::extract::State;
use evenkeel_store::{JobCursor, JobFilter, JobSort, PageRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::JobView;
use crate::auth::Caller;
use crate::page::{PageQuery, encode};
use crate::params::Params;
use crate::problem::Problem;
use crate::state::App;

/// A part of the list of jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobList {
    /// What is on it, oldest first.
    pub jobs: Vec<JobView>,
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

/// Which jobs to list.
#[derive(Clone, PartialEq, Eq, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobQuery {
    /// Those whose name starts with this.
    name_prefix: Option<String>,
    /// Those about this source.
    source_id: Option<String>,
}

/// The jobs, oldest first.
#[utoipa::path(
    get,
    path = "/api/v1/jobs",
    operation_id = "list_jobs",
    tag = "jobs",
    params(PageQuery, JobQuery),
    responses(
        (status = 200, description = "A part of the list", body = JobList),
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
) -> Result<Json<JobList>, Problem> {
    let request: PageRequest<JobCursor> = PageQuery::take(&mut params);
    let JobQuery { name_prefix, source_id } =
        JobQuery { name_prefix: params.text("name_prefix"), source_id: params.text("source_id") };
    params.finish()?;
    let filter = JobFilter { name_prefix, source_id, ..JobFilter::default() };
    let page = app.jobs.list(&caller.scope, &filter, JobSort::default(), request).await?;
    let now = app.jobs.now().await?;
    Ok(Json(JobList {
        jobs: page
            .items
            .into_iter()
            .map(|job| JobView::new(job, now).for_role(caller.scope.role))
            .collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: page.next.map(encode),
    }))
}
