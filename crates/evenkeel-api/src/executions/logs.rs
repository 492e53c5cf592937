//! `GET /api/v1/executions/{id}/logs`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event as Message;
use axum::response::{IntoResponse as _, Response};
use evenkeel_commands::{CommandError, Runs};
use evenkeel_core::lease::Fence;
use evenkeel_core::run::AttemptStatus;
use evenkeel_core::{AttemptId, LogLine, LogLines, LogStream, RunIds, RunLog, Timestamp};
use evenkeel_store::{Attempt, Scope};
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
    pub execution_id: AttemptId,
    /// Where it stands.
    #[schema(value_type = String)]
    pub status: AttemptStatus,
    /// Will no more come?
    pub is_final: bool,
    /// All lines as one text. Of a long log its beginning and its end are kept
    /// (`[engine] run_log_bytes`), and a line in between says how many bytes were left out.
    pub text: String,
    /// The same line by line, in the order in which they began.
    pub lines: Vec<LogLineView>,
    /// So many bytes were printed in all, on both streams.
    pub printed_bytes: u64,
    /// What went wrong.
    pub error_message: Option<String>,
}

/// A line that an execution has printed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct LogLineView {
    /// `stdout` or `stderr`. Crawls and the answers to HTTP calls have `stdout` only.
    #[schema(value_type = String)]
    pub stream: LogStream,
    /// When its first byte arrived; null if that was not recorded, as for the answer to an HTTP call.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// So many bytes were printed before it, on both streams.
    pub offset: u64,
    /// So many bytes were left out just before it.
    pub left_out_before: u64,
    /// The text without its newline.
    pub text: String,
    /// Its newline has not come yet, or was left out.
    pub is_partial: bool,
}

impl From<LogLine> for LogLineView {
    fn from(line: LogLine) -> Self {
        let LogLine { stream, at, offset, left_out_before, text, is_partial } = line;
        Self { stream, at, offset, left_out_before, text, is_partial }
    }
}

/// What of a log is asked for.
#[derive(Copy, Clone, Default)]
struct Wanted {
    stream: Option<LogStream>,
    /// At first only so many lines.
    tail: Option<u32>,
}

impl Wanted {
    fn lines(self, log: &RunLog, from: u64) -> LogLines {
        let lines = log.lines(from, self.stream);
        match self.tail {
            Some(tail) => lines.tail(tail as usize),
            None => lines,
        }
    }
}

impl LogView {
    fn new(run: &Attempt, wanted: Wanted, ids: &RunIds) -> Self {
        let log = run.printed().unwrap_or_default();
        let lines = wanted.lines(&log, 0);
        Self {
            execution_id: ids.attempt_id(run.key),
            status: run.status,
            is_final: is_over(run.status),
            text: lines.text(),
            lines: lines.lines.into_iter().map(LogLineView::from).collect(),
            printed_bytes: log.total,
            error_message: run.results.error.clone(),
        }
    }
}

fn is_over(status: AttemptStatus) -> bool {
    !matches!(status, AttemptStatus::Pending | AttemptStatus::Running)
}

/// What an execution, or the latest execution of a run, has printed; also while it runs.
///
/// With `follow=true` it is a stream of server-sent events: `log` with what is new as `text` and as
/// `lines` (and `"skipped": true` if something of it was left out, because the body printed more than
/// is kept), and `end` when the execution is over. No byte comes twice. A line that the body has not
/// ended yet is partial, and the next line of its stream goes on with it.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/logs",
    operation_id = "get_execution_logs",
    tag = "executions",
    params(
        ("id" = uuid::Uuid, Path, description = "The id of an execution or of a run"),
        ("tail" = Option<u32>, Query, description = "Only the last so many lines",
         minimum = 1, maximum = 100_000),
        ("stream" = Option<String>, Query, description = "Only this stream: `stdout` or `stderr`"),
        ("follow" = Option<bool>, Query, description = "Go on until it is over"),
        ("Last-Event-ID" = Option<String>, Header,
         description = "Where a stream ended, to follow the log from there"),
    ),
    responses(
        (status = 200, description = "What it printed",
         content((LogView = "application/json"), (StreamEvent = "text/event-stream"))),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn logs(
    State(app): State<App>,
    caller: Caller,
    PathId(id): PathId,
    headers: HeaderMap,
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
    let stream = params.text("stream").and_then(|name| {
        let known = LogStream::ALL.into_iter().find(|stream| stream.as_str() == name);
        if known.is_none() {
            params.fault("stream", format!("{name:?} is neither stdout nor stderr"));
        }
        known
    });
    params.finish()?;
    let told = last_told(&headers)?;
    // A client that reconnects already has the earlier lines, so `tail` no longer applies.
    let wanted = Wanted { stream, tail: tail.filter(|_| told.is_none()) };
    let id = read_id(&id)?;
    let run = app.runs.get(&caller.scope, id).await?;
    if !follow {
        return Ok(Json(LogView::new(&run, wanted, &app.run_ids)).into_response());
    }
    let place = app.streams.enter(caller.scope.tenant)?;
    let following = Following {
        runs: app.runs.clone(),
        run_ids: app.run_ids,
        scope: caller.scope,
        // Of a run, the attempt that was the latest when it was asked for.
        id: app.run_ids.attempt_id(run.key),
        told: told.unwrap_or((run.fence, 0)),
        wanted,
        looked: false,
        is_over: false,
    };
    Ok(app.streams.answer(&app, place, &caller, following))
}

/// How far a client has followed the log, if it comes back.
fn last_told(headers: &HeaderMap) -> Result<Option<(Fence, u64)>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    let place = text
        .split_once('.')
        .and_then(|(fence, bytes)| Some((Fence(fence.parse().ok()?), bytes.parse().ok()?)));
    let fault = || {
        let message = format!("{text:?} is not the id of an event of this stream; leave it out");
        Problem::parameter("Last-Event-ID", &message)
    };
    place.map(Some).ok_or_else(fault)
}

struct Following {
    runs: Runs,
    run_ids: RunIds,
    scope: Scope,
    id: AttemptId,
    /// The fence of the attempt and how many bytes of its log were sent. A node that takes the attempt
    /// over has a higher fence and prints from the beginning.
    told: (Fence, u64),
    wanted: Wanted,
    looked: bool,
    is_over: bool,
}

impl Following {
    /// What was not told before, if there is anything.
    fn news(&mut self, run: &Attempt) -> Option<Message> {
        let log = run.printed()?;
        if self.told.0 != run.fence {
            self.told = (run.fence, 0);
        }
        let new = self.wanted.lines(&log, self.told.1);
        self.told.1 = self.told.1.max(log.total);
        self.wanted.tail = None;
        if new == LogLines::default() {
            return None;
        }
        let (text, skipped) = (new.text(), new.has_gap());
        let lines: Vec<LogLineView> = new.lines.into_iter().map(LogLineView::from).collect();
        let data = json!({"text": text, "skipped": skipped, "lines": lines});
        let (fence, bytes) = self.told;
        let place = format!("{}.{bytes}", fence.0);
        Some(Message::default().event("log").id(place).data(data.to_string()))
    }
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
            let mut messages = Vec::new();
            messages.extend(self.news(&run));
            self.looked = true;
            if is_over(run.status) {
                self.is_over = true;
                let data = json!({
                    "execution_id": self.run_ids.attempt_id(run.key),
                    "status": run.status,
                    "error_message": run.results.error,
                });
                messages.push(Message::default().event("end").data(data.to_string()));
            }
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }
}
