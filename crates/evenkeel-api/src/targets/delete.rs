//! `DELETE /api/v1/targets/{id}`

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::read_number;
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::state::App;

/// A target that is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedTargetView {
    /// Which one.
    pub number: i64,
    /// Always true.
    pub deleted: bool,
    /// So many jobs named it, and name none now. What they run stays as it is.
    pub detached_jobs: u64,
}

/// Deletes a target. One that jobs name stays, unless `force` leaves those without one.
#[utoipa::path(
    delete,
    path = "/api/v1/targets/{id}",
    operation_id = "delete_target",
    tag = "targets",
    params(
        ("id" = i64, Path, description = "The number of the target"),
        ("force" = Option<bool>, Query, description = "Even if jobs name it: they name none then"),
    ),
    responses(
        (status = 200, description = "It is gone", body = DeletedTargetView),
        (status = 409, description = "Jobs name it; the detail says how many"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    mut params: Params,
    _: NoBody,
) -> Result<Json<DeletedTargetView>, Problem> {
    let force = params.flag("force").unwrap_or(false);
    params.finish()?;
    let number = read_number(&id)?;
    let detached_jobs = app.jobs.delete_target(&caller.scope, number, force).await?;
    Ok(Json(DeletedTargetView { number, deleted: true, detached_jobs }))
}
