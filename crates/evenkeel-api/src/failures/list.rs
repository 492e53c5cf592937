//! `GET /api/v1/failures`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{AttemptId, JobId, RunIds, Timestamp};
use evenkeel_store::{FailureCursor, FailureGroup, PageRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Caller;
use crate::page::PageQuery;
use crate::params::{Params, job_in_query};
use crate::problem::Problem;
use crate::state::App;

/// Executions that failed for the same reason, as far as their messages tell.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FailureView {
    /// What their messages have in common: numbers, ids and what stands in quotes do not count.
    #[schema(value_type = String, example = "5f3c1a9be27d4410")]
    pub fingerprint: String,
    /// How many there are.
    #[schema(example = 12)]
    pub count: u64,
    /// What the newest said. Of a program that failed, the first line has the exit code and the last
    /// line of its standard error.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    pub error_message: String,
    /// When the first was noticed.
    #[schema(value_type = String, format = DateTime)]
    pub first_at: Timestamp,
    /// When the newest ended.
    #[schema(value_type = String, format = DateTime)]
    pub last_at: Timestamp,
    /// The newest one.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: AttemptId,
    /// The job of the newest one, if it is still there.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub job_id: Option<JobId>,
    /// Its name, if it has one.
    #[schema(example = "nightly-report")]
    pub job_name: Option<String>,
}

impl FailureView {
    fn new(group: FailureGroup, ids: &RunIds) -> Self {
        Self {
            fingerprint: group.fingerprint.to_string(),
            count: group.count,
            error_message: group.error,
            first_at: group.first_at,
            last_at: group.last_at,
            execution_id: ids.attempt_id(group.newest),
            job_id: group.job,
            job_name: group.job_name,
        }
    }
}

/// A part of the list of failures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FailureList {
    /// What is on it, newest first.
    pub failures: Vec<FailureView>,
    /// How many groups there are on all pages.
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

/// Which failures.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FailureQuery {
    /// Only those of this job (its id or name), among its executions that are kept (the newest 2,000
    /// at most).
    job_id: Option<String>,
}

/// Failed executions, grouped by what their messages have in common, newest first. Groups are kept
/// for as long as history is.
#[utoipa::path(
    get,
    path = "/api/v1/failures",
    operation_id = "list_failures",
    tag = "executions",
    params(PageQuery, FailureQuery),
    responses((status = 200, description = "A part of the list", body = FailureList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<FailureList>, Problem> {
    let request: PageRequest<FailureCursor> = PageQuery::take(&mut params);
    let FailureQuery { job_id } = FailureQuery { job_id: params.text("job_id") };
    params.finish()?;
    let job_id = job_in_query(&app, &caller, job_id).await?;
    let page = app.runs.failures(&caller.scope, job_id, request).await?;
    Ok(Json(FailureList {
        failures: page
            .items
            .into_iter()
            .map(|group| FailureView::new(group, &app.run_ids))
            .collect(),
        total: page.total,
        total_is_estimate: page.total_is_estimate,
        limit: request.limit,
        offset: request.offset,
        next_cursor: app.cursor(page.next),
    }))
}
