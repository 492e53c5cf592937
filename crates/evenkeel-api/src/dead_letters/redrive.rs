//! `POST /api/v1/dead-letters/{id}/redrive`

use axum::Json;
use axum::http::StatusCode;
use evenkeel_core::RunId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{missing, read_id};
use crate::body::NoBody;
use crate::call::Call;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// A redriven dead letter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RedrivenView {
    /// Id of the dead letter.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// Id of the new run.
    #[schema(value_type = uuid::Uuid)]
    pub run_id: RunId,
}

/// Redrives a dead letter: its job runs again now, in addition to its scheduled runs.
///
/// A dead letter can be redriven once. If the new run also exhausts its retries, it becomes a new
/// dead letter.
#[utoipa::path(
    post, path = "/api/v1/dead-letters/{id}/redrive", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of the dead letter, or of an execution of its run")),
    responses(
        (status = 202, description = "The new run is queued", body = RedrivenView),
        (status = 409, description = "The dead letter was already redriven, a run of its job is active, or the \
         job has ended"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn redrive_dead_letter(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<(StatusCode, Json<RedrivenView>), Problem> {
    let id = read_id(&id)?;
    let answer = call.runs.redrive(call.scope(), &[id]).await?.pop();
    let run = answer.ok_or_else(missing)?;
    let run = run.map_err(|error| Problem::from(error).or_missing(missing))?;
    Ok((StatusCode::ACCEPTED, Json(RedrivenView { id, run_id: call.run_ids.run_id(run) })))
}
