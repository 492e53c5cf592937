//! `GET /ui/stream`: tells open pages that something changed, so that they load themselves again.
//!
//! Each node has at most one event stream of the API per tenant, which all viewers of the tenant
//! share. It is open only while a page is open, because nodes produce events only while a client
//! listens. Pages learn only that something changed, and read the new state with their own session.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::backend::{Backend, Credential};
use crate::session::Session;
use crate::shared_answers::{self, SHARED_FOR};
use crate::{Web, layout};

/// The event stream of the API.
const EVENTS: &str = "/api/v1/events";
/// Maximum number of viewers of one node. A page that gets no stream loads itself every 5 s.
const VIEWERS_MAX: usize = 1024;
/// Maximum number of viewers of one tenant on one node, so that others can still get a stream.
const VIEWERS_MAX_PER_TENANT: usize = 768;
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Interval at which an open stream checks whether its session is still valid.
const CHECK_SESSION_EVERY: Duration = Duration::from_secs(5);
/// Reconnection delay sent to browsers.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);
/// Shortest time between two messages to a viewer.
const PACE_MIN: Duration = Duration::from_secs(1);
/// Each message makes a page load itself. Above 250 viewers, the time between two messages to a
/// viewer grows by this time per viewer, so that a node renders at most 250 pages per second.
const PACE_PER_VIEWER: Duration = Duration::from_millis(4);

/// The number of changes so far; `None` until the event stream of the API is open.
type Changes = watch::Sender<Option<u64>>;

/// The event streams of all tenants that have viewers on this node.
#[derive(Clone, Default)]
pub(crate) struct Live(Arc<Mutex<BTreeMap<String, Arc<Changes>>>>);

impl Live {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Changes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn viewers(&self) -> usize {
        self.lock().values().map(|changes| changes.receiver_count()).sum()
    }

    /// Adds a viewer, and begins to read events if it is the first viewer of its tenant. Returns
    /// `None` if there are too many viewers.
    fn join(&self, backend: &Backend, session: &Session) -> Option<watch::Receiver<Option<u64>>> {
        let mut tenants = self.lock();
        let total: usize = tenants.values().map(|changes| changes.receiver_count()).sum();
        let own = tenants.get(&session.tenant);
        if total >= VIEWERS_MAX
            || own.is_some_and(|own| own.receiver_count() >= VIEWERS_MAX_PER_TENANT)
        {
            return None;
        }
        if let Some(changes) = own {
            return Some(changes.subscribe());
        }
        let (changes, viewer) = watch::channel(None);
        let changes = Arc::new(changes);
        tenants.insert(session.tenant.clone(), Arc::clone(&changes));
        let (live, backend) = (self.clone(), backend.clone());
        let (tenant, credential) = (session.tenant.clone(), session.credential.clone());
        tokio::spawn(async move {
            let is_unused = || live.leave_if(&tenant, &changes, |it| it.receiver_count() == 0);
            read_events(&changes, &backend, &credential, is_unused).await;
            live.leave_if(&tenant, &changes, |_| true);
        });
        Some(viewer)
    }

    /// Forgets a stream if `ends` says so; no viewer can join in between. The streams of its viewers
    /// end too, and the browser that reconnects first opens a new stream with its own credential.
    fn leave_if(
        &self,
        tenant: &str,
        stream: &Arc<Changes>,
        ends: impl FnOnce(&Changes) -> bool,
    ) -> bool {
        let mut tenants = self.lock();
        let is_known = tenants.get(tenant).is_some_and(|known| Arc::ptr_eq(known, stream));
        let is_over = ends(stream);
        if is_known && is_over {
            tenants.remove(tenant);
        }
        is_over
    }
}

/// Counts the events of the API until the last viewer leaves or the API ends the stream.
async fn read_events(
    changes: &Changes,
    backend: &Backend,
    credential: &Credential,
    is_unused: impl Fn() -> bool,
) {
    let mut events = match backend.stream(credential, EVENTS).await {
        Ok(events) => events,
        Err(refused) => {
            tracing::debug!(
                http.status = refused.status.as_u16(),
                "dashboard got no event stream; its pages load themselves every 5 s"
            );
            return;
        }
    };
    changes.send_replace(Some(0));
    loop {
        let frame = tokio::select! {
            () = changes.closed() => {
                if is_unused() {
                    return;
                }
                continue;
            }
            frame = events.frame() => frame,
        };
        let Some(Ok(frame)) = frame else { return };
        if frame.data_ref().is_some_and(|bytes| is_event(bytes)) {
            changes.send_modify(|count| *count = count.map(|count| count.wrapping_add(1)));
        }
    }
}

/// True if a part of a stream is an event. Greetings and heartbeats are comments without data.
fn is_event(part: &[u8]) -> bool {
    part.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"data:"))
}

/// Returns the shortest time between two messages to one of `viewers` viewers.
fn pace(viewers: usize) -> Duration {
    let viewers = u32::try_from(viewers).unwrap_or(u32::MAX);
    PACE_PER_VIEWER.saturating_mul(viewers).max(PACE_MIN)
}

/// Answers with a stream of the messages `changed`, `alive` and `ended`.
pub(crate) async fn stream(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
) -> Response {
    if is_from_elsewhere(&headers) {
        let detail = "Only a page of this server may open the stream.";
        return layout::error(StatusCode::FORBIDDEN, "Sent from another site", detail);
    }
    let Some(mut changes) = web.live.join(&web.backend, &session) else {
        return unavailable("Too many pages are open.");
    };
    // The sender is dropped if the API refuses the stream.
    if changes.wait_for(Option::is_some).await.is_err() {
        return unavailable("The server has too many open event streams, or its store is away.");
    }
    changes.mark_unchanged();
    let viewer = Viewer::new(web, session, changes);
    let messages = stream::unfold(viewer, |mut viewer| async move {
        let message = viewer.next().await?;
        Some((Ok::<_, Infallible>(message), viewer))
    });
    let mut response = Sse::new(messages).into_response();
    // Keeps proxies from buffering messages.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn unavailable(why: &str) -> Response {
    let detail = format!("{why} Pages load themselves every 5 s until a stream is free.");
    let mut response =
        layout::error(StatusCode::SERVICE_UNAVAILABLE, "No live updates now", &detail);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// True if the browser says that a page of another origin sends the request. Another port of this
/// host is another origin, but gets the cookie.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|site| site != b"same-origin")
}

/// The stream of one page.
struct Viewer {
    web: Web,
    session: Session,
    changes: watch::Receiver<Option<u64>>,
    /// The first message, which sets the browser's reconnection delay.
    greeting: Option<Event>,
    alive: Interval,
    check: Interval,
    /// When the next message `changed` may be sent.
    next_at: Instant,
    /// When a change was noticed of which the page does not know yet.
    noticed_at: Option<Instant>,
    has_ended: bool,
}

impl Viewer {
    fn new(web: Web, session: Session, changes: watch::Receiver<Option<u64>>) -> Self {
        let now = shared_answers::now();
        let every = |time: Duration| {
            let mut interval = tokio::time::interval_at(now + time, time);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        Self {
            web,
            session,
            changes,
            greeting: Some(message("alive").retry(RECONNECT_AFTER)),
            alive: every(KEEP_ALIVE),
            check: every(CHECK_SESSION_EVERY),
            next_at: now,
            // The page may have been rendered before a change of which this stream does not know.
            noticed_at: Some(now),
            has_ended: false,
        }
    }

    /// Waits for the next message. Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        if self.has_ended {
            return None;
        }
        loop {
            let changed = async {
                tokio::time::sleep_until(self.next_at).await;
                let noticed_at = match self.noticed_at {
                    Some(noticed_at) => noticed_at,
                    None => {
                        self.changes.changed().await?;
                        *self.noticed_at.insert(shared_answers::now())
                    }
                };
                // Answers from before the change are no longer shared when the page asks.
                tokio::time::sleep_until(noticed_at + SHARED_FOR).await;
                Ok::<_, watch::error::RecvError>(())
            };
            tokio::select! {
                biased;
                _ = self.check.tick() => {
                    if !self.session.is_valid(&self.web).await {
                        self.has_ended = true;
                        return Some(message("ended"));
                    }
                }
                changed = changed => {
                    changed.ok()?;
                    self.noticed_at = None;
                    self.next_at = shared_answers::now() + pace(self.web.live.viewers());
                    return Some(message("changed"));
                }
                _ = self.alive.tick() => return Some(message("alive")),
            }
        }
    }
}

/// Browsers ignore messages without data.
fn message(kind: &str) -> Event {
    Event::default().event(kind).data("{}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_count_as_changes() {
        assert!(is_event(b"id: 7\nevent: run.ended\ndata: {}\n\n"));
        for comment in [&b": alive\nid: 7\n\n"[..], b": listening\nretry: 2000\n\n", b""] {
            assert!(!is_event(comment));
        }
    }

    #[test]
    fn node_renders_at_most_250_pages_per_second_for_its_viewers() {
        for viewers in [0, 1, 25, 100, 500, VIEWERS_MAX] {
            let pages_per_second = viewers as f64 / pace(viewers).as_secs_f64();
            assert!(pages_per_second <= 250.0, "{viewers}: {pages_per_second}");
            assert!(pace(viewers) >= PACE_MIN);
        }
    }

    #[test]
    fn page_of_another_port_may_not_open_the_stream() {
        let from = |site: &'static str| {
            is_from_elsewhere(&HeaderMap::from_iter([(
                "sec-fetch-site".parse().unwrap(),
                HeaderValue::from_static(site),
            )]))
        };
        assert!(from("same-site") && from("cross-site") && from("none"));
        assert!(!from("same-origin") && !is_from_elsewhere(&HeaderMap::new()));
    }
}
