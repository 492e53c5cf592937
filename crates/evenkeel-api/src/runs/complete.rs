//! `POST /api/v1/runs/{id}/complete`

use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_commands::AttemptReport;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_store::Results;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{AttemptCaller, CallbackFields, tail};
use crate::body::MaybeJson;
use crate::problem::Problem;
use crate::state::App;

/// Reports a successful outcome of an attempt. Every field is optional.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
pub struct CompleteDocument {
    /// `completed` (the default), or `partly_failed` if some items failed.
    pub outcome: Option<String>,
    /// Output of the attempt to store; only its last 64 KiB are kept.
    pub output: Option<String>,
    /// Number of items that the attempt found.
    pub items_crawled: Option<i64>,
    /// Number of items that the attempt stored.
    pub items_indexed: Option<i64>,
}

/// Reports that an attempt succeeded. A service calls this endpoint after it answered the HTTP call
/// of the attempt with 202.
///
/// Status 204 means that the outcome of the attempt is stored. Status 409 means that the attempt
/// has finished or another worker took it over, so the service has nothing left to do.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/complete", tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "Id of the execution")),
    request_body(content = Option<CompleteDocument>,
        example = json!({"output": "all done", "items_crawled": 25, "items_indexed": 23})),
    responses(
        (status = 204, description = "The outcome is stored"),
        (status = 409, description = "The attempt has finished or another worker took it over"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn complete_run(
    State(app): State<App>,
    caller: AttemptCaller,
    body: MaybeJson,
) -> Result<StatusCode, Problem> {
    let ending = read(CallbackFields::new(body)?)?;
    app.callbacks.end(caller.id, &caller.token, ending).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn read(mut fields: CallbackFields) -> Result<AttemptReport, Problem> {
    let outcome = match fields.text("outcome")?.as_deref() {
        None | Some("completed") => Outcome::Completed,
        Some("partly_failed") => Outcome::PartlyFailed,
        Some(_) => {
            let message = "must be completed or partly_failed; report failures to …/fail";
            return Err(Problem::parameter("outcome", message));
        }
    };
    let results = Results {
        output: fields.text("output")?.map(tail),
        items_crawled: fields.number("items_crawled")?,
        items_indexed: fields.number("items_indexed")?,
        ..Results::default()
    };
    fields.finish(&["outcome", "output", "items_crawled", "items_indexed"])?;
    Ok(AttemptReport { outcome, results, again: RetryHint::ByPolicy })
}
