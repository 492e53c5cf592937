//! `PUT /api/admin/jobs/bulk/status` and `POST /api/admin/jobs/bulk/retry`

use axum::{Extension, Json};
use evenkeel_commands::{
    AdminStatus, BulkStatus, EachJob, JobRef, read_bulk_retry, read_bulk_status,
};
use evenkeel_core::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::call::Call;
use crate::jobs::commands::has_time;
use crate::oversight::AuditSummary;
use crate::problem::{Problem, ProblemType};

/// Body of a request that overrides the status of the latest run of several jobs.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"job_ids": [1, 2, 3, 4, 5], "status": "queued"}))]
pub struct BulkStatusDocument {
    /// Numbers or UUIDs of the jobs, at most 10,000.
    #[schema(value_type = Vec<Object>, max_items = 10_000)]
    pub job_ids: Vec<serde_json::Value>,
    /// `queued`, `crawling`, `success` or `failed`.
    #[schema(pattern = "^(queued|crawling|success|failed)$")]
    pub status: String,
}

/// The jobs to retry.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"job_ids": [1, 2, 3, 4, 5]}))]
pub struct BulkRetryDocument {
    /// Numbers or UUIDs of the jobs, at most 10,000.
    #[schema(value_type = Vec<Object>, max_items = 10_000)]
    pub job_ids: Vec<serde_json::Value>,
}

/// The result for one job of a bulk request.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AdminResultView {
    /// Number of the job; absent if the request failed for this job and gave its UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// UUID of the job; absent if the request failed for this job and gave its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub uuid: Option<JobId>,
    /// True if the request succeeded for this job.
    pub ok: bool,
    /// Status of the job's latest run after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub status: Option<&'static str>,
    /// The reason why the request failed for this job; absent if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// The results of a bulk request.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct AdminResultsView {
    /// One result for each entry of `job_ids`, in the same order. A job that is listed twice has
    /// two results.
    pub results: Vec<AdminResultView>,
    /// Number of jobs that the request changed.
    pub updated: u64,
    /// Number of jobs that the request did not change, because of an error.
    pub failed: u64,
}

type Answer = (Extension<AuditSummary>, Json<AdminResultsView>);

fn answer(requested: &[JobRef], each: EachJob, summary: &str) -> Answer {
    let results: Vec<AdminResultView> = requested
        .iter()
        .zip(each)
        .map(|(requested, result)| match result {
            Ok(found) => AdminResultView {
                id: Some(found.job.number),
                uuid: Some(found.job.id),
                ok: true,
                status: found.status.map(AdminStatus::as_str),
                error: None,
            },
            Err(error) => {
                let missing = || Problem::new(ProblemType::NotFound, "there is no such job");
                let problem = Problem::from(error).or_missing(missing);
                let (id, uuid) = match requested {
                    JobRef::Number(number) => (Some(*number), None),
                    JobRef::Id(id) => (None, Some(*id)),
                };
                AdminResultView { id, uuid, ok: false, status: None, error: Some(problem) }
            }
        })
        .collect();
    let updated = results.iter().filter(|result| result.ok).count() as u64;
    let failed = results.len() as u64 - updated;
    let summary = format!("{summary}: {updated} of {}", results.len());
    (Extension(AuditSummary(summary)), Json(AdminResultsView { results, updated, failed }))
}

/// Overrides the status of the latest run of several jobs. The server handles each job
/// independently, like `PUT /api/admin/jobs/{id}/status`.
///
/// The server works on the request for at most 20 seconds. Jobs that the server has not handled
/// after 20 seconds stay unchanged; their results have an error of type `timeout`.
#[utoipa::path(
    put, path = "/api/admin/jobs/bulk/status", tag = "admin",
    request_body(content = BulkStatusDocument,
        example = json!({"job_ids": [1, 2, 3, 4, 5], "status": "queued"})),
    responses((status = 200, description = "The result for each item", body = AdminResultsView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_set_status_of_jobs(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<Answer, Problem> {
    let BulkStatus { jobs, status } = read_bulk_status(&document)?;
    let has_time = has_time(&call);
    let each = call.jobs.set_status_of_many(call.scope(), &jobs, status, &has_time).await?;
    Ok(answer(&jobs, each, &format!("set to {}", status.as_str())))
}

/// Queues a new run for each listed job whose latest run failed. Each job is handled independently.
///
/// The server works on the request for at most 20 seconds. Jobs that the server has not handled
/// after 20 seconds stay unchanged; their results have an error of type `timeout`.
#[utoipa::path(
    post, path = "/api/admin/jobs/bulk/retry", tag = "admin",
    request_body(content = BulkRetryDocument, example = json!({"job_ids": [1, 2, 3, 4, 5]})),
    responses((status = 200, description = "The result for each item", body = AdminResultsView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn admin_retry_jobs(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<Answer, Problem> {
    let jobs = read_bulk_retry(&document)?;
    let has_time = has_time(&call);
    let each = call.jobs.admin_retry_many(call.scope(), &jobs, &has_time).await?;
    Ok(answer(&jobs, each, "retried"))
}
