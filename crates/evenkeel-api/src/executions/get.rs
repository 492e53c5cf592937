//! `GET /api/v1/executions/{id}`

use axum::Json;
use axum::extract::State;

use super::{ExecutionView, read_id};
use crate::auth::Caller;
use crate::params::{NoParams, PathId};
use crate::problem::Problem;
use crate::state::App;

/// Returns an execution, or the latest execution of a run.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}",
    operation_id = "get_execution",
    tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of an execution; the id of a run stands for its latest execution")),
    responses((status = 200, description = "The execution", body = ExecutionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    _: NoParams,
) -> Result<Json<ExecutionView>, Problem> {
    let run = app.runs.get(&caller.scope, read_id(&id)?).await?;
    let waits = app.jobs.waiting_run(&caller.scope, &run).await?;
    let mut view = ExecutionView::new(run, &app.run_ids);
    view.priority = waits.map(|waits| waits.priority.get());
    view.effective_priority = waits.map(|waits| waits.effective_priority.get());
    Ok(Json(view))
}
