//! `POST /api/v1/executions/{id}/cancel`

use axum::Json;
use axum::http::StatusCode;
use evenkeel_core::AttemptId;
use evenkeel_store::RunCancelled;
use serde::Serialize;
use utoipa::ToSchema;

use super::read_id;
use crate::body::NoBody;
use crate::call::Call;
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};

/// A cancelled run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct CancelledView {
    /// Id of the execution that was asked to stop, or that was withdrawn from the queue.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: AttemptId,
    /// True if the execution is still running; it stops within seconds.
    pub running: bool,
}

/// Cancels one run: its running execution is stopped, or its queued execution is withdrawn.
///
/// The job stays active and keeps its schedule.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/cancel", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of an execution; the id of a run stands for its latest execution")),
    responses(
        (status = 202, description = "The run is being cancelled", body = CancelledView),
        (status = 409, description = "The run has already finished"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn cancel_execution(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<(StatusCode, Json<CancelledView>), Problem> {
    let (key, running) = match call.runs.cancel(call.scope(), read_id(&id)?).await? {
        RunCancelled::Asked(key) => (key, true),
        RunCancelled::Withdrawn(key) => (key, false),
        RunCancelled::Over | RunCancelled::NotFound => {
            return Err(Problem::new(ProblemType::NotFound, "there is no such execution"));
        }
    };
    let view = CancelledView { execution_id: call.run_ids.attempt_id(key), running };
    Ok((StatusCode::ACCEPTED, Json(view)))
}
