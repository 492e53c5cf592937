//! `GET /api/v1/dead-letters/{id}`

use axum::Json;
use axum::extract::State;

use super::view::DeadLetterView;
use super::{missing, read_id};
use crate::auth::Caller;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Returns a dead letter: a run that failed and will not be retried.
#[utoipa::path(
    get,
    path = "/api/v1/dead-letters/{id}",
    operation_id = "get_dead_letter",
    tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of the dead letter, or of an execution of its run")),
    responses((status = 200, description = "The dead letter", body = DeadLetterView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
) -> Result<Json<DeadLetterView>, Problem> {
    let found = app.runs.get_dead(&caller.scope, read_id(&id)?).await;
    let found = found.map_err(|error| Problem::from(error).or_missing(missing));
    Ok(Json(DeadLetterView::new(found?, &app.run_ids)))
}
