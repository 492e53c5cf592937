//! Server-sent event streams, with a limit on the number of open streams.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use evenkeel_access::Refusal;
use evenkeel_core::TenantNo;
use evenkeel_store::KeyHash;
use futures::stream;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use utoipa::ToSchema;

use crate::call::Call;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Interval of heartbeat comments, which show that the stream is alive and detect lost clients.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Maximum duration of a stream; the client then reconnects and its token is checked again.
const DURATION_MAX: Duration = Duration::from_secs(3600);
/// Interval at which an open stream checks whether its API key was revoked.
const CHECK_KEY_EVERY: Duration = Duration::from_secs(30);
/// Reconnection delay sent to clients.
const RECONNECT_AFTER: Duration = Duration::from_secs(2);

/// Maximum number of open streams on this node.
pub const STREAMS_MAX: usize = 256;
/// Maximum number of open streams of one tenant on this node.
pub const STREAMS_MAX_PER_TENANT: usize = 64;

/// One server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct StreamEvent {
    /// Kind of the event.
    pub event: Option<String>,
    /// Position of the event in the stream; a client resumes after it.
    pub id: Option<String>,
    /// Data of the event: a JSON object.
    pub data: Option<String>,
    /// Reconnection delay, in milliseconds.
    pub retry: Option<u32>,
}

/// Limits the number of open event streams.
#[derive(Clone)]
pub struct Streams {
    open: Arc<Mutex<BTreeMap<TenantNo, usize>>>,
    stopping: watch::Receiver<bool>,
}

/// Permit for one open stream, released on drop.
pub(crate) struct StreamSlot {
    open: Arc<Mutex<BTreeMap<TenantNo, usize>>>,
    tenant: TenantNo,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        let left = open.get(&self.tenant).map_or(0, |count| count - 1);
        if left > 0 {
            open.insert(self.tenant, left);
        } else {
            open.remove(&self.tenant);
        }
        show(&open);
    }
}

fn show(open: &BTreeMap<TenantNo, usize>) {
    metrics::gauge!("evenkeel_streams_open").set(open.values().sum::<usize>() as f64);
}

impl Default for Streams {
    /// Creates the stream limits of a node that never stops.
    fn default() -> Self {
        Self::new(watch::channel(false).1)
    }
}

impl Streams {
    /// All streams end when `stopping` becomes true.
    pub fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { open: Arc::default(), stopping }
    }

    /// Takes a permit for a new stream; fails if too many streams are open.
    pub(crate) fn enter(&self, tenant: TenantNo) -> Result<StreamSlot, Problem> {
        let mut open = lock(&self.open);
        let own = open.get(&tenant).copied().unwrap_or(0);
        if own >= STREAMS_MAX_PER_TENANT || open.values().sum::<usize>() >= STREAMS_MAX {
            let detail = format!(
                "a node has at most {STREAMS_MAX_PER_TENANT} open streams per tenant and {STREAMS_MAX} in \
                 total; close one, or try again later"
            );
            return Err(Problem::new(ProblemType::TooManyStreams, detail));
        }
        open.insert(tenant, own + 1);
        show(&open);
        Ok(StreamSlot { open: Arc::clone(&self.open), tenant })
    }

    /// Streams the events of `source` until the source ends, the node stops, or the credential
    /// expires.
    pub(crate) fn answer(
        &self,
        call: &Call,
        slot: StreamSlot,
        source: impl Source + 'static,
    ) -> Response {
        let (caller, now) = (&call.caller, (call.clock)());
        let credential_lasts =
            caller.expires_at.map_or(DURATION_MAX, |expires_at| expires_at.since(now).into());
        #[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
        let began = Instant::now();
        let mut heartbeat = tokio::time::interval_at(began + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut check_key = tokio::time::interval_at(began + CHECK_KEY_EVERY, CHECK_KEY_EVERY);
        check_key.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let greeting = Event::default().comment("listening").retry(RECONNECT_AFTER);
        let open = Open {
            ready: VecDeque::from([source.greet(greeting)]),
            source,
            heartbeat,
            check_key,
            key: caller.key.map(|key| (App::clone(call), key)),
            ends_at: began + DURATION_MAX.min(credential_lasts),
            stopping: self.stopping.clone(),
            has_ended: false,
            _slot: slot,
        };
        let events = stream::unfold(open, |mut open| async move {
            let event = open.next().await?;
            Some((Ok::<_, Infallible>(event), open))
        });
        let mut response = Sse::new(events).into_response();
        // Keeps proxies from buffering events.
        let unbuffered = axum::http::HeaderValue::from_static("no");
        response.headers_mut().insert("x-accel-buffering", unbuffered);
        response
    }
}

/// The source of a stream's events.
pub(crate) trait Source: Send {
    /// Waits for more events; returns `None` if the source has ended. Must be cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Event>>> + Send;

    /// Adds the current position to the first event of a stream or to a heartbeat.
    fn greet(&self, event: Event) -> Event {
        event
    }
}

struct Open<S> {
    source: S,
    ready: VecDeque<Event>,
    heartbeat: Interval,
    check_key: Interval,
    /// The API key of the stream's client, which is checked for revocation.
    key: Option<(App, KeyHash)>,
    ends_at: Instant,
    stopping: watch::Receiver<bool>,
    has_ended: bool,
    _slot: StreamSlot,
}

impl<S: Source> Open<S> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            let mut is_check_due = false;
            tokio::select! {
                biased;
                // `wait_for` fails if the sender of the stop signal was dropped; the node then
                // never stops.
                Ok(_) = self.stopping.wait_for(|stop| *stop) => self.has_ended = true,
                () = tokio::time::sleep_until(self.ends_at) => self.has_ended = true,
                _ = self.check_key.tick(), if self.key.is_some() => is_check_due = true,
                more = self.source.next() => match more {
                    Some(events) => self.ready.extend(events),
                    None => self.has_ended = true,
                },
                _ = self.heartbeat.tick() => {
                    self.ready.push_back(self.source.greet(Event::default().comment("alive")));
                }
            }
            if is_check_due {
                self.has_ended = is_revoked(self.key.as_ref()).await;
            }
        }
    }
}

/// True if the API key was revoked. Returns false while the store is unavailable: the stream may
/// stay open, because it sends no new data.
async fn is_revoked(key: Option<&(App, KeyHash)>) -> bool {
    let Some((app, key)) = key else { return false };
    match app.access.authenticator.check_key(key, (app.clock)()).await {
        Ok(()) | Err(Refusal::Store(_)) => false,
        Err(_) => true,
    }
}
