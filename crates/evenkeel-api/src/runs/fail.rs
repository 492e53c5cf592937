//! `POST /api/v1/runs/{id}/fail`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::AttemptReport;
use evenkeel_core::after_attempt::{RetryHint, Then};
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Results;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AttemptCaller, CallbackFields, tail};
use crate::body::MaybeJson;
use crate::call::Answer;
use crate::problem::Problem;
use crate::state::App;

/// Reports that an attempt failed. Every field is optional.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
pub struct FailDocument {
    /// Error message of the attempt; only its last 64 KiB are kept.
    pub error: Option<String>,
    /// Output of the attempt to store; only its last 64 KiB are kept.
    pub output: Option<String>,
    /// False if a retry would be useless; the run is then not retried.
    pub retry: Option<bool>,
    /// Minimum delay before the retry in seconds, at most one day (86,400).
    pub retry_after_seconds: Option<i64>,
    /// Number of items that the attempt found.
    pub items_crawled: Option<i64>,
    /// Number of items that the attempt stored.
    pub items_indexed: Option<i64>,
}

/// Whether and when the run is retried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FailedView {
    /// Earliest start time of the next attempt; null if the run is not retried.
    pub retry_at: Option<Timestamp>,
}

/// Reports that an attempt failed. A service calls this endpoint after it answered the HTTP call of
/// the attempt with 202.
///
/// The job's retry policy decides about a retry; `retry` and `retry_after_seconds` can only forbid
/// or delay it.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/fail", tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "Id of the execution")),
    request_body(content = Option<FailDocument>,
        example = json!({"error": "the source is unavailable", "retry_after_seconds": 120})),
    responses(
        (status = 200, description = "The outcome is stored", body = FailedView),
        (status = 409, description = "The attempt has finished or another worker took it over"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn fail_run(
    State(app): State<App>,
    caller: AttemptCaller,
    body: MaybeJson,
) -> Answer<FailedView> {
    let ending = read(CallbackFields::new(body)?)?;
    let then = app.callbacks.end(caller.id, &caller.token, ending).await?;
    let retry_at = match then {
        Then::Retry { due } => Some(due),
        Then::EndRun { .. } => None,
    };
    Ok(Json(FailedView { retry_at }))
}

fn read(mut fields: CallbackFields) -> Result<AttemptReport, Problem> {
    let again = match (fields.flag("retry")?, fields.number("retry_after_seconds")?) {
        (Some(false), None) => RetryHint::Never,
        (Some(false), Some(_)) => {
            let message = "cannot be combined with retry: false; remove one of them";
            return Err(Problem::parameter("retry_after_seconds", message));
        }
        (_, Some(secs)) => {
            // Any number of seconds is accepted, because the delay is later limited to one day.
            RetryHint::NotBefore(Span::from_secs(secs.clamp(0, 1 << 32).unsigned_abs()))
        }
        (_, None) => RetryHint::ByPolicy,
    };
    let error = fields.text("error")?.filter(|text| !text.is_empty());
    let results = Results {
        error: Some(error.map_or_else(|| "its receiver reported a failure".into(), tail)),
        output: fields.text("output")?.map(tail),
        items_crawled: fields.number("items_crawled")?,
        items_indexed: fields.number("items_indexed")?,
        ..Results::default()
    };
    let known =
        ["error", "output", "retry", "retry_after_seconds", "items_crawled", "items_indexed"];
    fields.finish(&known)?;
    Ok(AttemptReport { outcome: Outcome::Failed, results, again })
}
