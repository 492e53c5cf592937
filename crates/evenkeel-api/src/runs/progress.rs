//! `POST /api/v1/runs/{id}/progress`

use axum::extract::State;
use axum::http::StatusCode;
use evenkeel_core::Progress;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{AttemptCaller, CallbackFields};
use crate::body::MaybeJson;
use crate::problem::Problem;
use crate::state::App;

/// Reports the progress of a running attempt. Every field is optional.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
pub struct ProgressDocument {
    /// Number of units of work that are done.
    pub done: Option<i64>,
    /// Total number of units of work.
    pub total: Option<i64>,
    /// Number of items found so far.
    pub items_crawled: Option<i64>,
    /// Number of items stored so far.
    pub items_indexed: Option<i64>,
    /// Short text about what the attempt is doing now.
    pub message: Option<String>,
    /// Data for the next attempt of the run: any JSON value of up to 4 KiB. The HTTP call of the
    /// next attempt sends the checkpoint in the header `X-Evenkeel-Checkpoint`.
    pub checkpoint: Option<Value>,
}

/// Maximum length of a checkpoint in bytes, because a checkpoint is sent in an HTTP header.
const CHECKPOINT_BYTES_MAX: usize = 4096;

/// Reports the progress of a running attempt.
///
/// Each progress report also counts as a heartbeat.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/progress", tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "Id of the execution")),
    request_body(content = ProgressDocument,
        example = json!({"done": 25, "total": 100, "message": "a quarter"})),
    responses(
        (status = 204, description = "The progress was recorded"),
        (status = 409, description = "The attempt has finished or another worker took it over: stop working on it"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn progress_run(
    State(app): State<App>,
    caller: AttemptCaller,
    body: MaybeJson,
) -> Result<StatusCode, Problem> {
    let (progress, checkpoint) = read(CallbackFields::new(body)?)?;
    app.callbacks.progress(caller.id, &caller.token, progress, checkpoint).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn read(mut fields: CallbackFields) -> Result<(Progress, Option<Vec<u8>>), Problem> {
    let progress = Progress {
        done: fields.number("done")?.map(i64::unsigned_abs),
        total: fields.number("total")?.map(i64::unsigned_abs),
        items_processed: fields.number("items_crawled")?,
        items_saved: fields.number("items_indexed")?,
        message: fields.text("message")?,
    };
    let checkpoint = fields.value("checkpoint").map(|value| value.to_string().into_bytes());
    if checkpoint.as_deref().is_some_and(|data| length_in_header(data) > CHECKPOINT_BYTES_MAX) {
        let message = format!(
            "has more than {CHECKPOINT_BYTES_MAX} bytes of JSON, counting six for each non-ASCII character"
        );
        return Err(Problem::parameter("checkpoint", &message));
    }
    let known = ["done", "total", "items_crawled", "items_indexed", "message", "checkpoint"];
    fields.finish(&known)?;
    Ok((progress, checkpoint))
}

/// Returns the length of the checkpoint in the header, where non-ASCII characters become one or two
/// `\uxxxx` escapes.
fn length_in_header(json: &[u8]) -> usize {
    let text = String::from_utf8_lossy(json);
    text.chars().map(|c| if c.is_ascii() && c != '\x7f' { 1 } else { 6 * c.len_utf16() }).sum()
}
