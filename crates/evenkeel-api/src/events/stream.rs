//! `GET /api/v1/events`

use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event as Message;
use evenkeel_commands::{EventFilter, EventSubscription, FeedItem};
use evenkeel_core::RunIds;

use super::query::EventQuery;
use super::view::EventView;
use crate::call::Call;
use crate::params::{Params, job_in_query};
use crate::problem::Problem;
use crate::streams::{Source, StreamEvent};

/// Streams events about jobs and runs as they happen, as server-sent events.
///
/// Each server-sent event has an `id`, its kind as `event`, and an EventView as `data`. A client
/// that reconnects with the header `Last-Event-ID` resumes after the event with that id. The server
/// keeps the newest 10,000 events while a client listens, and for one minute after the last client
/// disconnects. An event of kind `gap` means that events may be missing; the client should reload
/// the state that it needs. Without `after` or `Last-Event-ID`, the stream begins with new events.
/// In a cluster, events of other nodes may be missing during the first second of a stream. A
/// comment every 15 seconds shows that the stream is alive. The stream ends when the token expires,
/// up to 30 seconds after an API key is revoked, after one hour, or when the node stops; clients
/// should reconnect.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events",
    params(
        EventQuery,
        ("Last-Event-ID" = Option<String>, Header,
         description = "Resumes the stream after the event with this id"),
    ),
    responses(
        (status = 200, description = "The stream", body = StreamEvent,
         content_type = "text/event-stream"),
    ),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn stream_events(
    call: Call,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let wanted = EventQuery::take(&mut params, &headers);
    params.finish()?;
    let job = job_in_query(&call, wanted.job).await?;
    let filter = EventFilter { kinds: wanted.kinds, job };
    let slot = call.streams.enter(call.scope().tenant)?;
    let listening = call.feed.listen(call.scope(), filter, wanted.after).await?;
    Ok(call.streams.answer(&call, slot, EventSource { listening, run_ids: call.run_ids }))
}

struct EventSource {
    listening: EventSubscription,
    run_ids: RunIds,
}

impl Source for EventSource {
    async fn next(&mut self) -> Option<Vec<Message>> {
        match self.listening.next().await {
            Ok(items) => Some(items.into_iter().map(|item| message(item, &self.run_ids)).collect()),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "reading events for a client failed; closing its event stream"
                );
                None
            }
        }
    }

    /// Even a stream without matching events sends its position, so that a client can resume it
    /// later.
    fn greet(&self, event: Message) -> Message {
        event.id(self.listening.at().0.to_string())
    }
}

fn message(item: FeedItem, ids: &RunIds) -> Message {
    match item {
        FeedItem::Gap => Message::default()
            .event("gap")
            .data(r#"{"detail":"events before this one may be missing"}"#),
        FeedItem::Event(event) => {
            let message = Message::default().id(event.no.0.to_string()).event(event.kind.as_str());
            // Serializing an event as JSON cannot fail, and escapes newlines.
            let text = serde_json::to_string(&EventView::new(event, ids)).unwrap_or_default();
            message.data(text)
        }
    }
}
