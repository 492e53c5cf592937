//! `POST /api/v1/dead-letters/redrive` and `…/delete`: many letters at once.

use axum::Json;
use axum::extract::State;
use evenkeel_commands::read_letter_ids;
use evenkeel_core::{AttemptId, RunId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::missing;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Which letters.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LetterIdsDocument {
    /// Their ids, at most 1000.
    #[schema(value_type = Vec<uuid::Uuid>, max_items = 1000)]
    pub ids: Vec<RunId>,
}

/// What became of one letter of many.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct LetterResultView {
    /// Which one.
    #[schema(value_type = uuid::Uuid)]
    pub id: RunId,
    /// Was it done?
    pub ok: bool,
    /// The run that it becomes, if it was taken up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub run_id: Option<RunId>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

/// What became of letters that were to be taken up.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct RedrivenLettersView {
    /// How many were.
    pub redriven: u64,
    /// How many were not.
    pub refused: u64,
    /// Each of them, in order.
    pub results: Vec<LetterResultView>,
}

/// What became of letters that were to be thrown away.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DeletedLettersView {
    /// How many were.
    pub deleted: u64,
    /// How many were not there.
    pub refused: u64,
    /// Each of them, in order.
    pub results: Vec<LetterResultView>,
}

fn read(document: &Value) -> Result<Vec<RunId>, Problem> {
    let ids = read_letter_ids(document)
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    Ok(ids.into_iter().map(AttemptId::run_id).collect())
}

fn count(results: &[LetterResultView]) -> (u64, u64) {
    let done = results.iter().filter(|result| result.ok).count() as u64;
    (done, results.len() as u64 - done)
}

/// Takes many dead letters up, each on its own: their jobs run again, now. Of a job whose overlap
/// policy allows one run at a time, one letter is taken up, and the others when that run is over.
#[utoipa::path(
    post,
    path = "/api/v1/dead-letters/redrive",
    operation_id = "redrive_dead_letters",
    tag = "executions",
    request_body(content = LetterIdsDocument,
        example = json!({"ids": ["0006442d-7b2b-8640-8000-000000040000"]})),
    responses((status = 200, description = "What became of each", body = RedrivenLettersView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn redrive_many(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<RedrivenLettersView>, Problem> {
    let ids = read(&document)?;
    let answers = app.runs.redrive(&caller.scope, &ids).await?;
    let results: Vec<LetterResultView> = ids
        .into_iter()
        .zip(answers)
        .map(|(id, answer)| match answer {
            Ok(run) => {
                let run_id = Some(app.run_ids.run_id(run));
                LetterResultView { id, ok: true, run_id, error: None }
            }
            Err(error) => {
                let problem = match Problem::from(error) {
                    problem if problem.kind == ProblemType::NotFound => missing(),
                    problem => problem,
                };
                LetterResultView { id, ok: false, run_id: None, error: Some(problem) }
            }
        })
        .collect();
    let (redriven, refused) = count(&results);
    Ok(Json(RedrivenLettersView { redriven, refused, results }))
}

/// Throws many dead letters away; their executions stay in the history.
#[utoipa::path(
    post,
    path = "/api/v1/dead-letters/delete",
    operation_id = "delete_dead_letters",
    tag = "executions",
    request_body(content = LetterIdsDocument,
        example = json!({"ids": ["0006442d-7b2b-8640-8000-000000040000"]})),
    responses((status = 200, description = "What became of each", body = DeletedLettersView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn delete_many(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<DeletedLettersView>, Problem> {
    let ids = read(&document)?;
    let there = app.runs.delete_dead(&caller.scope, &ids).await?;
    let results: Vec<LetterResultView> = ids
        .into_iter()
        .zip(there)
        .map(|(id, ok)| LetterResultView { id, ok, run_id: None, error: (!ok).then(missing) })
        .collect();
    let (deleted, refused) = count(&results);
    Ok(Json(DeletedLettersView { deleted, refused, results }))
}
