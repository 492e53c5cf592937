//! `PUT /api/admin/jobs/{id}/status` and `POST /api/admin/jobs/{id}/retry`

use axum::extract::State;
use axum::{Extension, Json};
use evenkeel_commands::read_status;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AdminJobView, meant, wrong};
use crate::auth::Caller;
use crate::body::{JsonBody, NoBody};
use crate::oversight::Deed;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Where the latest run of a job is to be.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"status": "queued"}))]
pub struct StatusDocument {
    /// `queued`, `crawling`, `success` or `failed`.
    #[schema(pattern = "^(queued|crawling|success|failed)$")]
    pub status: String,
}

/// Says where the latest run of a job is.
///
/// `success` and `failed` end what waits or runs of it: its body is let go, whatever its worker says
/// later is refused, and it is not tried again. `queued` puts what runs back into the queue, where a
/// worker may take it five seconds later; it tries again what failed, and runs once more what was
/// good. What is so already stays as it is. `crawling` is only for workers to say, and the end of a
/// run that is over is not rewritten: both are 409.
#[utoipa::path(
    put,
    path = "/api/admin/jobs/{id}/status",
    operation_id = "admin_set_job_status",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = StatusDocument, example = json!({"status": "queued"})),
    responses(
        (status = 200, description = "The job as it is now", body = AdminJobView),
        (status = 409, description = "Nothing of the job goes on that could be so, or it was \
            cancelled; its run goes no further, because it was asked to end or the job was paused; \
            another job has its dedup_key; or its time has come and no node is alive to begin it"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn set_status(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<(Extension<Deed>, Json<AdminJobView>), Problem> {
    let status = read_status(&document).map_err(wrong)?;
    let id = meant(&app, &caller, &id).await?;
    let set = app.jobs.set_status(&caller.scope, id, status).await?;
    Ok((Extension(Deed(format!("set to {}", status.as_str()))), Json(set.into())))
}

/// Puts a job whose latest run failed back into the queue, as a run of its own, whose retries count
/// from 0.
#[utoipa::path(
    post,
    path = "/api/admin/jobs/{id}/retry",
    operation_id = "admin_retry_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    responses(
        (status = 200, description = "The job as it is now", body = AdminJobView),
        (status = 409, description = "Its latest run did not fail, or is not over"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<Json<AdminJobView>, Problem> {
    let id = meant(&app, &caller, &id).await?;
    Ok(Json(app.jobs.admin_retry(&caller.scope, id).await?.into()))
}
