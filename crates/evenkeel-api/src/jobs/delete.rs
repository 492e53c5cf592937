//! `DELETE /api/v1/jobs/{id}`

use axum::Json;
use axum::extract::State;
use evenkeel_core::{JobId, RunId};
use serde::Serialize;
use utoipa::ToSchema;

use super::read_id;
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{Params, PathId};
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
    pub still_running: Vec<RunId>,
}

/// Deletes a job. What waits of it is withdrawn, what runs is asked to end, its history stays.
#[utoipa::path(
    delete,
    path = "/api/v1/jobs/{id}",
    operation_id = "delete_job",
    tag = "jobs",
    params(("id" = uuid::Uuid, Path, description = "Which job")),
    responses(
        (status = 200, description = "It is gone", body = DeletedView),
        (status = 404, description = "There is no such job", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "A parameter is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    params: Params,
    _: NoBody,
) -> Result<Json<DeletedView>, Problem> {
    params.finish()?;
    let id = read_id(&id)?;
    let running = app.jobs.delete(&caller.scope, id).await?;
    let still_running = running.into_iter().map(|key| key.execution_id()).collect();
    Ok(Json(DeletedView { id, deleted: true, still_running }))
}
