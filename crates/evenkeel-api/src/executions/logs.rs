//! `GET /api/v1/executions/{id}/logs`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::Event as Message;
use axum::response::{IntoResponse as _, Response};
use evenkeel_commands::{CommandError, NewLines, Runs};
use evenkeel_core::RunId;
use evenkeel_core::run::RunStatus;
use evenkeel_store::{Run, Scope};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::read_id;
use crate::auth::Caller;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::state::App;
use crate::streams::{Source, StreamEvent};

/// Bodies' words are stored about this often, so looking more often shows nothing more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What an execution has printed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct LogView {
    /// Which one.
    #[schema(value_type = uuid::Uuid)]
    pub execution_id: RunId,
    /// Where it stands.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Will no more come?
    pub is_final: bool,
    /// The end of what it printed, at most 64 KiB; a mark in its first line says how much was cut.
    pub text: String,
    /// What went wrong.
    pub error_message: Option<String>,
}

impl LogView {
    fn new(run: Run, lines: Option<u32>) -> Self {
        let text = run.results.output.or(run.log).unwrap_or_default();
        let text = match lines {
            Some(lines) => last_lines(&text, lines as usize).to_owned(),
            None => text,
        };
        Self {
            execution_id: run.key.execution_id(),
            status: run.status,
            is_final: is_over(run.status),
            text,
            error_message: run.results.error,
        }
    }
}

fn is_over(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Pending | RunStatus::Running)
}

/// The last so many lines of a text.
fn last_lines(text: &str, count: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let cut = body.rmatch_indices('\n').nth(count.saturating_sub(1));
    cut.map_or(text, |(at, _)| &text[at + 1..])
}

/// What an execution, or the latest execution of a run, has printed; also while it runs.
///
/// With `follow=true` it is a stream of server-sent events: `log` with what is new as `text` (and
/// `"skipped": true` if something before it was cut), and `end` when the execution is over.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/logs",
    operation_id = "get_execution_logs",
    tag = "executions",
    params(
        ("id" = uuid::Uuid, Path, description = "The id of an execution or of a run"),
        ("tail" = Option<u32>, Query, description = "Only the last so many lines",
         minimum = 1, maximum = 100_000),
        ("follow" = Option<bool>, Query, description = "Go on until it is over"),
    ),
    responses(
        (status = 200, description = "What it printed",
         content((LogView = "application/json"), (StreamEvent = "text/event-stream"))),
        (status = 404, description = "There is no such execution", body = Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "A parameter is wrong", body = Problem,
         content_type = "application/problem+json"),
    ),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn logs(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    mut params: Params,
) -> Result<Response, Problem> {
    let tail = params.number("tail", 1..=100_000);
    let follow = match params.text("follow").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            params.fault("follow", format!("{other:?} is neither true nor false"));
            false
        }
    };
    params.finish()?;
    let id = read_id(&id)?;
    let run = app.runs.get(&caller.scope, id).await?;
    if !follow {
        return Ok(Json(LogView::new(run, tail)).into_response());
    }
    let place = app.streams.enter(caller.scope.tenant)?;
    let following = Following {
        runs: app.runs.clone(),
        scope: caller.scope,
        // Of a run, the attempt that was the latest when it was asked for.
        id: run.key.execution_id(),
        told: NewLines::default(),
        tail,
        looked: false,
        is_over: false,
    };
    Ok(app.streams.answer(&app, place, &caller, following))
}

struct Following {
    runs: Runs,
    scope: Scope,
    id: RunId,
    told: NewLines,
    /// At first only so many lines.
    tail: Option<u32>,
    looked: bool,
    is_over: bool,
}

impl Source for Following {
    async fn next(&mut self) -> Option<Vec<Message>> {
        loop {
            if self.is_over {
                return None;
            }
            if self.looked {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            let run = match self.runs.get(&self.scope, self.id).await {
                Ok(run) => run,
                Err(CommandError::Store(error)) if error.is_outage() => {
                    self.looked = true;
                    continue;
                }
                // Its job was purged, or the store holds nonsense, which its own log tells.
                Err(_) => return None,
            };
            // Nothing is waited for from here on: what is noted as told is returned.
            let view = LogView::new(run, None);
            let mut messages = Vec::new();
            if let Some(new) = self.told.take(&view.text) {
                let text = match self.tail.filter(|_| !self.looked) {
                    Some(lines) => last_lines(new.text, lines as usize),
                    None => new.text,
                };
                let data = json!({"text": text, "skipped": new.skipped});
                messages.push(Message::default().event("log").data(data.to_string()));
            }
            self.looked = true;
            if view.is_final {
                self.is_over = true;
                let LogView { execution_id, status, error_message, .. } = view;
                let data = json!({
                    "execution_id": execution_id, "status": status, "error_message": error_message,
                });
                messages.push(Message::default().event("end").data(data.to_string()));
            }
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 1), "c");
        assert_eq!(last_lines("a\nb\n", 9), "a\nb\n");
        assert_eq!(last_lines("", 1), "");
    }
}
