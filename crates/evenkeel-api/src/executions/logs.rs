//! `GET /api/v1/executions/{id}/logs`

use std::time::Duration;

use axum::Json;
use axum::http::HeaderMap;
use axum::response::sse::Event as Message;
use axum::response::{IntoResponse as _, Response};
use evenkeel_commands::{CommandError, Runs};
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptId, LogLine, LogLines, LogStream, RunIds, RunLog, Timestamp};
use evenkeel_store::{Attempt, Scope};
use serde_json::json;

use super::read_id;
use crate::call::Call;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::streams::{Source, StreamEvent};
use crate::view::view;

/// Interval at which a log stream checks for new output; workers store output about once per
/// second.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

view! {
    /// The log of an execution.
    LogView::new(run: &Attempt, wanted: Wanted, ids: &RunIds) {
        let log = run.printed().unwrap_or_default();
        let lines = wanted.lines(&log, 0);
    }

    /// Id of the execution.
    execution_id: AttemptId as uuid::Uuid = ids.attempt_id(run.key),
    /// Status of the execution.
    status: AttemptStatus as String = run.status,
    /// True if the execution has finished and its log is complete.
    is_final: bool = is_over(run.status),
    /// All lines of the log as one text. If a log is longer than `[engine] run_log_bytes`, its
    /// beginning and its end are kept, and a line between them tells how many bytes were left out.
    text: String = lines.text(),
    /// The lines of the log, in the order in which their first bytes were printed.
    lines: Vec<LogLineView> = lines.lines.into_iter().map(LogLineView::new).collect(),
    /// Number of bytes that the execution printed to standard output and standard error together.
    printed_bytes: u64 = log.total,
    /// Error message of the execution.
    error_message: Option<String> = run.results.error.clone(),
}

view! {
    /// One line of a log.
    LogLineView::new(line: LogLine) {}

    /// `stdout` or `stderr`. The stream is always `stdout` for crawls and HTTP calls.
    stream: LogStream as String = line.stream,
    /// Time when the first byte of the line arrived; null if it was not recorded, for example for
    /// HTTP calls.
    at: Option<Timestamp> = line.at,
    /// Number of bytes printed before this line, on standard output and standard error together.
    offset: u64 = line.offset,
    /// Number of bytes that were left out directly before this line, because the log was too long.
    left_out_before: u64 = line.left_out_before,
    /// Text of the line without its newline.
    text: String = line.text,
    /// True if the newline of this line has not arrived yet or was left out.
    is_partial: bool = line.is_partial,
}

#[derive(Copy, Clone, Default)]
pub(crate) struct Wanted {
    stream: Option<LogStream>,
    /// Returns only the last `tail` lines of the log.
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

fn is_over(status: AttemptStatus) -> bool {
    !matches!(status, AttemptStatus::Pending | AttemptStatus::Running)
}

/// Returns the log of an execution, or of the latest execution of a run. A running execution has a
/// log as well.
///
/// With `follow=true` the response is a stream of server-sent events. An event `log` carries new
/// output as `text` and as `lines`, with `"skipped": true` if output was left out because the log
/// was too long. An event `end` follows when the execution has finished. The stream sends no byte
/// of the log twice. A line whose newline has not arrived is partial; the next line of the same
/// output stream continues it.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}/logs", tag = "executions",
    params(
        ("id" = uuid::Uuid, Path, description = "Id of an execution; the id of a run stands for its latest execution"),
        ("tail" = Option<u32>, Query, description = "Returns only this many lines from the end of the log",
         minimum = 1, maximum = 100_000),
        ("stream" = Option<String>, Query, description = "Returns only this output stream: `stdout` or `stderr`"),
        ("follow" = Option<bool>, Query, description = "Stream the log until the execution finishes"),
        ("Last-Event-ID" = Option<String>, Header,
         description = "Id of the last event received, to resume a stream"),
    ),
    responses(
        (status = 200, description = "The log of the execution",
         content((LogView = "application/json"), (StreamEvent = "text/event-stream"))),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_execution_logs(
    call: Call,
    PathId(id): PathId,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let tail = params.number("tail", 1..=100_000);
    let follow = params.flag("follow").unwrap_or(false);
    let streams = LogStream::ALL.map(|stream| (stream.as_str(), stream));
    let stream = params.choice("stream", &streams);
    params.finish()?;
    let sent = last_sent(&headers)?;
    // A client that reconnects already has the earlier lines, so `tail` no longer applies.
    let wanted = Wanted { stream, tail: tail.filter(|_| sent.is_none()) };
    let id = read_id(&id)?;
    let run = call.runs.get(call.scope(), id).await?;
    if !follow {
        return Ok(Json(LogView::new(&run, wanted, &call.run_ids)).into_response());
    }
    let slot = call.streams.enter(call.scope().tenant)?;
    let following = Following {
        runs: call.runs.clone(),
        run_ids: call.run_ids,
        scope: *call.scope(),
        // A request with a run id follows the attempt that was the latest when the request arrived.
        id: call.run_ids.attempt_id(run.key),
        sent: sent.unwrap_or((run.fence, 0)),
        wanted,
        polled: false,
        is_over: false,
    };
    Ok(call.streams.answer(&call, slot, following))
}

/// Reads the position up to which a reconnecting client has already received the log.
fn last_sent(headers: &HeaderMap) -> Result<Option<(Fence, u64)>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    let place = text
        .split_once('.')
        .and_then(|(fence, bytes)| Some((Fence(fence.parse().ok()?), bytes.parse().ok()?)));
    let fault = || {
        let message = format!("{text:?} is not the id of an event of this stream; remove it");
        Problem::parameter("Last-Event-ID", &message)
    };
    place.map(Some).ok_or_else(fault)
}

struct Following {
    runs: Runs,
    run_ids: RunIds,
    scope: Scope,
    id: AttemptId,
    /// The fence of the attempt, and the number of log bytes that were already sent. A node that
    /// takes over the attempt gets a higher fence and writes a new log.
    sent: (Fence, u64),
    wanted: Wanted,
    polled: bool,
    is_over: bool,
}

impl Following {
    /// Returns the log output that was not sent yet, if any.
    fn new_output(&mut self, run: &Attempt) -> Option<Message> {
        let log = run.printed()?;
        if self.sent.0 != run.fence {
            self.sent = (run.fence, 0);
        }
        let new = self.wanted.lines(&log, self.sent.1);
        self.sent.1 = self.sent.1.max(log.total);
        self.wanted.tail = None;
        if new == LogLines::default() {
            return None;
        }
        let (text, skipped) = (new.text(), new.has_gap());
        let lines: Vec<LogLineView> = new.lines.into_iter().map(LogLineView::new).collect();
        let data = json!({"text": text, "skipped": skipped, "lines": lines});
        let (fence, bytes) = self.sent;
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
            if self.polled {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            let run = match self.runs.get(&self.scope, self.id).await {
                Ok(run) => run,
                Err(CommandError::Store(error)) if error.is_outage() => {
                    self.polled = true;
                    continue;
                }
                // The stream ends if the job was purged or the stored log is corrupt; the store
                // itself logs corrupt data.
                Err(_) => return None,
            };
            // The code below has no `await`, so a cancelled call loses no output that is counted as
            // sent.
            let mut messages = Vec::new();
            messages.extend(self.new_output(&run));
            self.polled = true;
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
