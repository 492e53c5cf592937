//! `POST /api/v1/dead-letters/{id}/redrive`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_core::RunId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{missing, read_id};
use crate::auth::Caller;
use crate::body::NoBody;
use crate::params::{NoParams, PathId};
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// A letter that was taken up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RedrivenView {
    /// Which one.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// The run that it becomes.
    #[schema(value_type = uuid::Uuid)]
    pub run_id: RunId,
}

/// Takes a dead letter up: its job runs again, now, beside its schedule. A letter is taken up once;
/// if the new run dies as well, it has a letter of its own.
#[utoipa::path(
    post,
    path = "/api/v1/dead-letters/{id}/redrive",
    operation_id = "redrive_dead_letter",
    tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "The id of the letter, or of an execution of its run")),
    responses(
        (status = 202, description = "It will run", body = RedrivenView),
        (status = 409, description = "It was taken up before, a run of its job goes on, or the job is \
         over"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn redrive(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Result<(StatusCode, Json<RedrivenView>), Problem> {
    let id = read_id(&id)?;
    let answer = app.runs.redrive(&caller.scope, &[id]).await?.pop();
    let run = match answer.ok_or_else(missing)? {
        Ok(run) => run,
        Err(error) => {
            return Err(match Problem::from(error) {
                problem if problem.kind == ProblemType::NotFound => missing(),
                problem => problem,
            });
        }
    };
    Ok((StatusCode::ACCEPTED, Json(RedrivenView { id, run_id: app.run_ids.run_id(run) })))
}
