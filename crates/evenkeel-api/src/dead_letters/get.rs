//! `GET /api/v1/dead-letters/{id}`

use axum::Json;

use super::view::DeadLetterView;
use super::{missing, read_id};
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};
use crate::problem::Problem;

/// Returns a dead letter: a run that failed and will not be retried.
#[utoipa::path(
    get, path = "/api/v1/dead-letters/{id}", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of the dead letter, or of an execution of its run")),
    responses((status = 200, description = "The dead letter", body = DeadLetterView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_dead_letter(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
) -> Answer<DeadLetterView> {
    let found = call.runs.get_dead(call.scope(), read_id(&id)?).await;
    let found = found.map_err(|error| Problem::from(error).or_missing(missing));
    Ok(Json(DeadLetterView::new(found?, &call.run_ids)))
}
