//! `GET /api/v1/runs/{id}`

use axum::Json;

use super::RunView;
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId, read_id};

/// Returns a run with all its attempts.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of a run, or of one of its executions")),
    responses((status = 200, description = "The run", body = RunView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_run(call: Call, PathId(id): PathId, _: NoParams) -> Answer<RunView> {
    let run = call.runs.run(call.scope(), read_id(&id, "run")?).await?;
    Ok(Json(RunView::new(run, &call.run_ids)))
}
