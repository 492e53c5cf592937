//! `GET /api/v1/executions/{id}`

use axum::Json;

use super::{ExecutionView, read_id};
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};

/// Returns an execution, or the latest execution of a run.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of an execution; the id of a run stands for its latest execution")),
    responses((status = 200, description = "The execution", body = ExecutionView)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_execution(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
) -> Answer<ExecutionView> {
    let run = call.runs.get(call.scope(), read_id(&id)?).await?;
    let waits = call.jobs.waiting_run(call.scope(), &run).await?;
    let mut view = ExecutionView::new(run, &call.run_ids);
    view.priority = waits.map(|waits| waits.priority.get());
    view.effective_priority = waits.map(|waits| waits.effective_priority.get());
    Ok(Json(view))
}
