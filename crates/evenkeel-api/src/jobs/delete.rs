//! `DELETE /api/v1/jobs/{id}`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use evenkeel_core::{AttemptId, JobId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::NoBody;
use crate::etag::if_match;
use crate::params::{Params, PathJob};
use crate::problem::Problem;
use crate::state::App;

/// A job that is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedView {
    /// Which one.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Always true.
    pub deleted: bool,
    /// Executions that still run and were asked to end.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub still_running: Vec<AttemptId>,
    /// So many executions and dead letters of its history were forgotten, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged: Option<u64>,
}

/// Deletes a job. What waits of it is withdrawn, what runs is asked to end, its history stays until
/// retention takes it. With `purge=true` it goes at once, but for runs that still go on; so does what
/// is left of a job that was deleted before.
#[utoipa::path(
    delete,
    path = "/api/v1/jobs/{id}",
    operation_id = "delete_job",
    tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id or name"),
        ("purge" = Option<bool>, Query, description = "Forget its history, too"),
        ("If-Match" = Option<String>, Header,
         description = "Only if the job has one of these ETags still; * for any"),
    ),
    responses(
        (status = 200, description = "It is gone", body = DeletedView),
        (status = 412, description = "The job was changed meanwhile; its present ETag comes along"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathJob(id): PathJob,
    mut params: Params,
    headers: HeaderMap,
    _: NoBody,
) -> Result<Json<DeletedView>, Problem> {
    let purges = params.flag("purge").unwrap_or(false);
    params.finish()?;
    let meant = if_match(&headers);
    let gone = app.jobs.delete(&caller.scope, id, purges, meant.as_deref()).await?;
    let still_running = gone.running.into_iter().map(|key| app.run_ids.attempt_id(key)).collect();
    Ok(Json(DeletedView { id, deleted: true, still_running, purged: gone.purged }))
}
