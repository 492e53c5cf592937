//! `GET /api/v1/failures`

use axum::Json;
use evenkeel_core::{AttemptId, JobId, RunIds, Timestamp};
use evenkeel_store::{FailureCursor, FailureGroup, PageRequest};

use crate::call::{Answer, Call};
use crate::page::{PageQuery, list_answer};
use crate::params::{Params, job_in_query};
use crate::view::view;

view! {
    /// A group of failed executions with similar error messages.
    FailureView::new(group: FailureGroup, ids: &RunIds) {}

    /// Identifies the group: a hash of its error message without numbers, ids and quoted text.
    #[schema(value_type = String, example = "5f3c1a9be27d4410")]
    fingerprint: String = group.fingerprint.to_string(),
    /// Number of failed executions in the group.
    #[schema(example = 12)]
    count: u64 = group.count,
    /// Error message of the newest failed execution in the group. For a program, the first line has
    /// the exit code and the last line that the program wrote to standard error.
    #[schema(example = "connect to 10.0.0.7:443 failed: timed out")]
    error_message: String = group.error,
    /// Time when the oldest failed execution of the group finished.
    first_at: Timestamp = group.first_at,
    /// Time when the newest failed execution of the group finished.
    last_at: Timestamp = group.last_at,
    /// Id of the newest failed execution.
    execution_id: AttemptId as uuid::Uuid = ids.attempt_id(group.newest),
    /// Id of the job of the newest failed execution; null if the job was deleted.
    job_id: Option<JobId> as Option<uuid::Uuid> = group.job,
    /// Name of the job of the newest failed execution.
    #[schema(example = "nightly-report")]
    job_name: Option<String> = group.job_name,
}

list_answer! {
    /// One page of failure groups.
    FailureList {
        /// The groups, newest first.
        failures: FailureView
    }
}

/// Lists failed executions, grouped by similar error messages, newest first.
///
/// A group of failures is kept as long as the execution history.
#[utoipa::path(
    get, path = "/api/v1/failures", tag = "executions",
    params(
        PageQuery,
        ("job_id" = Option<String>, Query,
         description = "Lists only failures of this job, given by id or name. At most the newest 2,000 stored\n\
            executions of the job are searched."),
    ),
    responses((status = 200, description = "One page of the list", body = FailureList)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn list_failures(call: Call, mut params: Params) -> Answer<FailureList> {
    let request: PageRequest<FailureCursor> = PageQuery::take(&mut params);
    let job = params.text("job_id");
    params.finish()?;
    let job = job_in_query(&call, job).await?;
    let page = call.runs.failures(call.scope(), job, request).await?;
    let view = |group| FailureView::new(group, &call.run_ids);
    Ok(Json(FailureList::new(&call, &request, page, view)))
}
