//! `POST /api/v1/dead-letters/redrive` and `…/delete`: many dead letters at once.

use axum::Json;
use evenkeel_commands::read_letter_ids;
use evenkeel_core::{AttemptId, RunId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::missing;
use crate::body::JsonBody;
use crate::call::{Answer, Call};
use crate::problem::Problem;

/// The dead letters to handle.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LetterIdsDocument {
    /// Ids of the dead letters, at most 1000.
    #[schema(value_type = Vec<uuid::Uuid>, max_items = 1000)]
    pub ids: Vec<RunId>,
}

/// The result for one dead letter of a bulk request.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct LetterResultView {
    /// Id of the dead letter.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// True if the dead letter was redriven or deleted.
    pub ok: bool,
    /// Id of the new run, if the dead letter was redriven.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// The reason why the dead letter was not redriven or deleted; absent on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// The results of a bulk redrive.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RedrivenLettersView {
    /// Number of dead letters that were redriven.
    pub redriven: u64,
    /// Number of dead letters that could not be redriven.
    pub refused: u64,
    /// One result for each entry of `ids`, in the same order.
    pub results: Vec<LetterResultView>,
}

/// The results of a bulk delete.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DeletedLettersView {
    /// Number of dead letters that were deleted.
    pub deleted: u64,
    /// Number of dead letters that were not found.
    pub refused: u64,
    /// One result for each entry of `ids`, in the same order.
    pub results: Vec<LetterResultView>,
}

fn read(document: &Value) -> Result<Vec<RunId>, Problem> {
    let ids = read_letter_ids(document)?;
    Ok(ids.into_iter().map(AttemptId::run_id).collect())
}

fn count(results: &[LetterResultView]) -> (u64, u64) {
    let done = results.iter().filter(|result| result.ok).count() as u64;
    (done, results.len() as u64 - done)
}

/// Redrives many dead letters: the job of each dead letter runs again now. Each dead letter is
/// handled independently.
///
/// If a job allows only one run at a time, the server redrives one of its dead letters and refuses
/// the others until the new run has finished.
#[utoipa::path(
    post, path = "/api/v1/dead-letters/redrive", tag = "executions",
    request_body(content = LetterIdsDocument,
        example = json!({"ids": ["0006442d-7b2b-8640-8000-000000040000"]})),
    responses((status = 200, description = "The result for each item", body = RedrivenLettersView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn redrive_dead_letters(
    call: Call,
    JsonBody(document): JsonBody,
) -> Answer<RedrivenLettersView> {
    let ids = read(&document)?;
    let answers = call.runs.redrive(call.scope(), &ids).await?;
    let results: Vec<LetterResultView> = ids
        .into_iter()
        .zip(answers)
        .map(|(id, answer)| match answer {
            Ok(run) => {
                let run_id = Some(call.run_ids.run_id(run));
                LetterResultView { id, ok: true, run_id, error: None }
            }
            Err(error) => {
                let problem = Problem::from(error).or_missing(missing);
                LetterResultView { id, ok: false, run_id: None, error: Some(problem) }
            }
        })
        .collect();
    let (redriven, refused) = count(&results);
    Ok(Json(RedrivenLettersView { redriven, refused, results }))
}

/// Deletes many dead letters.
///
/// Deleting dead letters does not delete the executions of their runs.
#[utoipa::path(
    post, path = "/api/v1/dead-letters/delete", tag = "executions",
    request_body(content = LetterIdsDocument,
        example = json!({"ids": ["0006442d-7b2b-8640-8000-000000040000"]})),
    responses((status = 200, description = "The result for each item", body = DeletedLettersView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_dead_letters(
    call: Call,
    JsonBody(document): JsonBody,
) -> Answer<DeletedLettersView> {
    let ids = read(&document)?;
    let found = call.runs.delete_dead(call.scope(), &ids).await?;
    let results: Vec<LetterResultView> = ids
        .into_iter()
        .zip(found)
        .map(|(id, ok)| LetterResultView { id, ok, run_id: None, error: (!ok).then(missing) })
        .collect();
    let (deleted, refused) = count(&results);
    Ok(Json(DeletedLettersView { deleted, refused, results }))
}
