//! `PUT /api/admin/jobs/{id}/priority` and `POST /api/admin/jobs/{id}/boost`

use axum::extract::State;
use axum::{Extension, Json};
use evenkeel_commands::{read_boost, read_new_priority};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AdminJobView, meant, wrong};
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::oversight::Deed;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Another priority.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"priority": 50}))]
pub struct PriorityDocument {
    /// From 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    pub priority: u8,
}

/// By how much to raise a priority.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"boost": 20}))]
pub struct BoostDocument {
    /// From 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    pub boost: u8,
}

/// Gives a job another priority. What waits of it has that at once, and keeps what it has waited.
#[utoipa::path(
    put,
    path = "/api/admin/jobs/{id}/priority",
    operation_id = "admin_set_job_priority",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = PriorityDocument, example = json!({"priority": 50})),
    responses(
        (status = 200, description = "The job as it is now", body = AdminJobView),
        (status = 409, description = "The job was cancelled"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn set_priority(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<(Extension<Deed>, Json<AdminJobView>), Problem> {
    let priority = read_new_priority(&document).map_err(wrong)?;
    let id = meant(&app, &caller, &id).await?;
    app.jobs.set_priority(&caller.scope, id, priority).await?;
    let deed = Deed(format!("priority set to {}", priority.get()));
    Ok((Extension(deed), Json(app.jobs.admin_job(&caller.scope, id).await?.into())))
}

/// Raises the priority of a job, to 100 at most. Of two boosts at once both count.
#[utoipa::path(
    post,
    path = "/api/admin/jobs/{id}/boost",
    operation_id = "admin_boost_job",
    tag = "admin",
    params(("id" = String, Path, description = "The number of the job, or its UUID", example = "1")),
    request_body(content = BoostDocument, example = json!({"boost": 20})),
    responses(
        (status = 200, description = "The job as it is now", body = AdminJobView),
        (status = 409, description = "The job was cancelled"),
        (status = 412, description = "The job changed again and again meanwhile"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn boost(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<(Extension<Deed>, Json<AdminJobView>), Problem> {
    let by = read_boost(&document).map_err(wrong)?;
    let id = meant(&app, &caller, &id).await?;
    app.jobs.boost(&caller.scope, id, by).await?;
    let view = AdminJobView::from(app.jobs.admin_job(&caller.scope, id).await?);
    let deed = Deed(format!("priority raised by {by} to {}", view.priority));
    Ok((Extension(deed), Json(view)))
}
