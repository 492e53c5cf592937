//! `GET /api/v1/failures`

use axum::Json;
use evenkeel_core::{AttemptId, JobId, RunIds, Timestamp};
use evenkeel_store::{FailureCursor, FailureGroup, PageRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};

/// A group of failed executions with similar error messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FailureView {
    /// Identifies the group: a hash of its error message without numbers, ids and quoted text.
    #[schema(value_type = String, example = "5f3c1a9be27d4410")]
    pub fingerprint: String,
    /// Number of failed executions in the group.
    #[schema(example = 12)]
    pub count: u64,
    /// Error message of the newest failed execution in the group. For a program, the first line has
    /// the exit code and the last line that the program wrote to standard error.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    pub error_message: String,
    /// Time when the oldest failed execution of the group finished.
    pub first_at: Timestamp,
    /// Time when the newest failed execution of the group finished.
    pub last_at: Timestamp,
    /// Id of the newest failed execution.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: AttemptId,
    /// Id of the job of the newest failed execution; null if the job was deleted.
    #[schema(value_type = Option<uuid::Uuid>)]
    pub job_id: Option<JobId>,
    /// Name of the job of the newest failed execution.
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

list_answer! {
    /// One page of failure groups.
    FailureList {
        /// The groups, newest first.
        failures: FailureView
    }
}

/// Filter of the list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FailureQuery {
    /// Lists only failures of this job, given by id or name. At most the newest 2,000 stored
    /// executions of the job are searched.
    job_id: Option<String>,
}

/// Lists failed executions, grouped by similar error messages, newest first.
///
/// A group of failures is kept as long as the execution history.
#[utoipa::path(
    get,
    path = "/api/v1/failures",
    tag = "executions",
    params(PageQuery, FailureQuery),
    responses((status = 200, description = "One page of the list", body = FailureList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_failures(call: Call, mut params: Params) -> Answer<FailureList> {
    let request: PageRequest<FailureCursor> = PageQuery::take(&mut params);
    let FailureQuery { job_id } = FailureQuery { job_id: params.text("job_id") };
    params.finish()?;
    let job_id = job_in_query(&call, job_id).await?;
    let page = call.runs.failures(call.scope(), job_id, request).await?;
    let view = |group| FailureView::new(group, &call.run_ids);
    Ok(Json(FailureList::new(&call, &request, page, view)))
}
