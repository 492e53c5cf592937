//! `DELETE /api/v1/targets/{id}`

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::read_number;
use crate::body::NoBody;
use crate::call::{Answer, Call};
use crate::params::{Params, PathId};

/// A deleted target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedTargetView {
    /// Number of the target.
    pub number: i64,
    /// Always true.
    pub deleted: bool,
    /// Number of jobs that referred to the target and now have no target. The detached jobs keep
    /// their executor and URL.
    pub detached_jobs: u64,
}

/// Deletes a target.
///
/// A target that jobs refer to can only be deleted with `force=true`, which detaches those jobs.
#[utoipa::path(
    delete, path = "/api/v1/targets/{id}", tag = "targets",
    params(
        ("id" = i64, Path, description = "Number of the target"),
        ("force" = Option<bool>, Query, description = "Deletes the target even if jobs refer to it, and detaches those jobs"),
    ),
    responses(
        (status = 200, description = "The deleted target", body = DeletedTargetView),
        (status = 409, description = "Jobs refer to the target; the detail tells how many"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_target(
    call: Call,
    PathId(id): PathId,
    mut params: Params,
    _: NoBody,
) -> Answer<DeletedTargetView> {
    let force = params.flag("force").unwrap_or(false);
    params.finish()?;
    let number = read_number(&id)?;
    let detached_jobs = call.jobs.delete_target(call.scope(), number, force).await?;
    Ok(Json(DeletedTargetView { number, deleted: true, detached_jobs }))
}
