//! Answers that go on: server-sent events, as many at once as there is room for.

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

use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// Nobody must take a silent stream for a dead one, and a dead one must be noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After this time a client shows its token again.
const LASTS_MAX: Duration = Duration::from_secs(3600);
/// So often a key is looked up again, which may have been revoked.
const CHECK_KEY_EVERY: Duration = Duration::from_secs(30);
/// Clients that lost the stream come back after this time.
const COME_BACK_AFTER: Duration = Duration::from_secs(2);

/// Streams on this node.
pub const STREAMS_MAX: usize = 256;
/// Streams of one tenant on this node, so that nobody takes all the room.
pub const STREAMS_MAX_PER_TENANT: usize = 64;

/// One event of a stream, as servers send them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct StreamEvent {
    /// What kind it is of.
    pub event: Option<String>,
    /// Where it stands, to go on from.
    pub id: Option<String>,
    /// More about it: a JSON object.
    pub data: Option<String>,
    /// How long to wait before coming back, in milliseconds.
    pub retry: Option<u32>,
}

/// Answers that go on.
#[derive(Clone)]
pub struct Streams {
    open: Arc<Mutex<BTreeMap<TenantNo, usize>>>,
    stopping: watch::Receiver<bool>,
}

/// A stream's place among those that are open.
pub(crate) struct Place {
    open: Arc<Mutex<BTreeMap<TenantNo, usize>>>,
    tenant: TenantNo,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Place {
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
    /// On a node that never stops.
    fn default() -> Self {
        Self::new(watch::channel(false).1)
    }
}

impl Streams {
    /// None yet. All end when `stopping` says so.
    pub fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { open: Arc::default(), stopping }
    }

    /// A place for one more.
    pub(crate) fn enter(&self, tenant: TenantNo) -> Result<Place, Problem> {
        let mut open = lock(&self.open);
        let own = open.get(&tenant).copied().unwrap_or(0);
        if own >= STREAMS_MAX_PER_TENANT || open.values().sum::<usize>() >= STREAMS_MAX {
            let detail = format!(
                "at most {STREAMS_MAX_PER_TENANT} streams of a tenant and {STREAMS_MAX} in all are \
                 open at once on a node; close one, or come back later"
            );
            return Err(Problem::new(ProblemType::TooManyStreams, detail));
        }
        open.insert(tenant, own + 1);
        show(&open);
        Ok(Place { open: Arc::clone(&self.open), tenant })
    }

    /// Answers with what `source` brings, until it ends, the node stops, or the caller's token does.
    pub(crate) fn answer(
        &self,
        app: &App,
        place: Place,
        caller: &Caller,
        source: impl Source + 'static,
    ) -> Response {
        let now = (app.clock)();
        let credential_lasts =
            caller.expires_at.map_or(LASTS_MAX, |expires_at| expires_at.since(now).into());
        #[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
        let began = Instant::now();
        let mut heartbeat = tokio::time::interval_at(began + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut check_key = tokio::time::interval_at(began + CHECK_KEY_EVERY, CHECK_KEY_EVERY);
        check_key.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let greeting = Event::default().comment("listening").retry(COME_BACK_AFTER);
        let open = Open {
            ready: VecDeque::from([source.greet(greeting)]),
            source,
            heartbeat,
            check_key,
            key: caller.key.map(|key| (app.clone(), key)),
            ends_at: began + LASTS_MAX.min(credential_lasts),
            stopping: self.stopping.clone(),
            is_over: false,
            _place: place,
        };
        let events = stream::unfold(open, |mut open| async move {
            let event = open.next().await?;
            Some((Ok::<_, Infallible>(event), open))
        });
        let mut response = Sse::new(events).into_response();
        // Else a proxy may keep events back to send more of them at once.
        let unbuffered = axum::http::HeaderValue::from_static("no");
        response.headers_mut().insert("x-accel-buffering", unbuffered);
        response
    }
}

/// Where the events of a stream come from.
pub(crate) trait Source: Send {
    /// Waits for more; `None` when no more can come. It may be given up at any moment.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Event>>> + Send;

    /// Adds to the first event, or to one that only says that the stream lives, how far it is.
    fn greet(&self, event: Event) -> Event {
        event
    }
}

struct Open<S> {
    source: S,
    ready: VecDeque<Event>,
    heartbeat: Interval,
    check_key: Interval,
    /// The API key it was opened with, and who knows whether that is good.
    key: Option<(App, KeyHash)>,
    ends_at: Instant,
    stopping: watch::Receiver<bool>,
    is_over: bool,
    _place: Place,
}

impl<S: Source> Open<S> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let mut is_check_due = false;
            tokio::select! {
                biased;
                // Without anybody who could say so, it never stops.
                Ok(_) = self.stopping.wait_for(|stop| *stop) => self.is_over = true,
                () = tokio::time::sleep_until(self.ends_at) => self.is_over = true,
                _ = self.check_key.tick(), if self.key.is_some() => is_check_due = true,
                more = self.source.next() => match more {
                    Some(events) => self.ready.extend(events),
                    None => self.is_over = true,
                },
                _ = self.heartbeat.tick() => {
                    self.ready.push_back(self.source.greet(Event::default().comment("alive")));
                }
            }
            if is_check_due {
                self.is_over = is_locked_out(self.key.as_ref()).await;
            }
        }
    }
}

/// Was the key taken back? While the store is silent nobody knows, and nothing new is told.
async fn is_locked_out(key: Option<&(App, KeyHash)>) -> bool {
    let Some((app, key)) = key else { return false };
    match app.access.door.check_key(key, (app.clock)()).await {
        Ok(()) | Err(Refusal::Store(_)) => false,
        Err(_) => true,
    }
}
