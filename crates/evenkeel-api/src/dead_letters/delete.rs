//! `DELETE /api/v1/dead-letters/{id}`

use axum::Json;
use evenkeel_core::RunId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{missing, read_id};
use crate::body::NoBody;
use crate::call::{Answer, Call};
use crate::params::{NoParams, PathId};

/// A deleted dead letter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DeletedLetterView {
    /// Id of the dead letter.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// Always true.
    pub deleted: bool,
}

/// Deletes a dead letter.
///
/// Deleting a dead letter does not delete the executions of its run.
#[utoipa::path(
    delete, path = "/api/v1/dead-letters/{id}", tag = "executions",
    params(("id" = uuid::Uuid, Path, description = "Id of the dead letter, or of an execution of its run")),
    responses((status = 200, description = "The deleted dead letter", body = DeletedLetterView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_dead_letter(
    call: Call,
    PathId(id): PathId,
    _: NoParams,
    _: NoBody,
) -> Answer<DeletedLetterView> {
    let id = read_id(&id)?;
    let there = call.runs.delete_dead(call.scope(), &[id]).await?;
    if there == [true] { Ok(Json(DeletedLetterView { id, deleted: true })) } else { Err(missing()) }
}
