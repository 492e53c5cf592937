//! Streams events about jobs and runs to clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::{JobId, Span};
use evenkeel_store::{Event, EventKind, EventNo, Scope, Signal, Store, StoreError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::Result;
use crate::runs::check_job;

/// Time for which nodes publish events after the store last recorded a listening client. A client
/// that reconnects within 60 s misses no events.
const LISTENER_TTL: Span = Span::from_secs(60);
/// Interval at which the server records in the store that a client is listening.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Number of events per store request.
const PAGE: u32 = 500;
/// Interval at which a subscription polls the store for events, so that a lost signal delays events
/// by at most 1 s.
const POLL: Duration = Duration::from_secs(1);
/// Pause between a signal and the read of new events, so that events that happen at about the same
/// time are read together.
const READ_PAUSE: Duration = Duration::from_millis(50);
/// Time within which all nodes notice that a client is listening. A new subscription ignores gaps
/// in the events during its first 2 s, because these gaps concern earlier events.
const START_UP: Duration = Duration::from_secs(2);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// Kinds of events to return; an empty list means all kinds.
    pub kinds: Vec<EventKind>,
    pub job: Option<JobId>,
}

impl EventFilter {
    fn fits(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.job.is_none_or(|job| event.job == Some(job))
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FeedItem {
    Event(Event),
    /// Events between the previous and the next item of the stream may be missing.
    Gap,
}

#[derive(Clone)]
pub struct Feed {
    store: Arc<dyn Store>,
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Feed {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, renewed: Arc::default() }
    }

    /// Subscribes to the tenant's events after the position `after`, or to new events if no
    /// position is given.
    pub async fn listen(
        &self,
        scope: &Scope,
        filter: EventFilter,
        after: Option<EventNo>,
    ) -> Result<EventSubscription> {
        check_job(&*self.store, scope, filter.job).await?;
        let signals = self.store.signals().subscribe();
        self.renew().await?;
        self.wait_for_publisher().await;
        let newest = self.store.newest_event().await?;
        Ok(EventSubscription {
            feed: self.clone(),
            scope: *scope,
            filter,
            // A position beyond the newest event comes from another database, so the stream begins
            // with a gap.
            at: after.unwrap_or(newest).min(newest),
            owes_gap: after.is_some_and(|after| after > newest),
            began: after.is_none().then(instant_now),
            signals,
        })
    }

    /// Records in the store that a client is listening, unless this server did so within
    /// [`RENEW_EVERY`].
    async fn renew(&self) -> Result<(), StoreError> {
        let now = instant_now();
        let renewed = || self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = renewed().is_some_and(|then| now.duration_since(then) < RENEW_EVERY);
        if is_recent && self.store.events().has_listeners() {
            return Ok(());
        }
        let until = self.store.now().await?.saturating_add(LISTENER_TTL);
        self.store.listen(until).await?;
        *renewed() = Some(now);
        Ok(())
    }

    /// Waits at most 1 s until this node publishes its events, so that the stream contains all
    /// events that happen after `listen` returns.
    async fn wait_for_publisher(&self) {
        const STEP: Duration = Duration::from_millis(5);
        const STEPS: u32 = 200;
        for _ in 0..STEPS {
            if self.store.events().has_listeners() {
                return;
            }
            tokio::time::sleep(STEP).await;
        }
    }
}

pub struct EventSubscription {
    feed: Feed,
    scope: Scope,
    filter: EventFilter,
    at: EventNo,
    owes_gap: bool,
    began: Option<Instant>,
    signals: broadcast::Receiver<Signal>,
}

impl EventSubscription {
    /// Returns the position of the last event that the subscription has read.
    pub fn at(&self) -> EventNo {
        self.at
    }

    /// Waits for the next events. Cancelling the returned future loses no events.
    pub async fn next(&mut self) -> Result<Vec<FeedItem>> {
        if std::mem::take(&mut self.owes_gap) {
            return Ok(vec![FeedItem::Gap]);
        }
        loop {
            let before = self.at;
            match self.read().await {
                Ok(items) if !items.is_empty() => return Ok(items),
                // No event that was read belongs to the tenant and passes the filter; more events
                // may follow.
                Ok(_) if self.at > before => {}
                Ok(_) => self.wait().await,
                Err(error) if error.is_outage() => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "store unavailable; event streams will retry"
                    );
                    tokio::time::sleep(POLL).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<FeedItem>, StoreError> {
        self.feed.renew().await?;
        let page = self.feed.store.events_after(&self.scope, self.at, PAGE).await?;
        // No `await` follows, so cancelling the future cannot lose the events that were read.
        self.at = page.seen;
        let is_starting =
            self.began.is_some_and(|began| instant_now().duration_since(began) < START_UP);
        let gap = (page.gap && !is_starting).then_some(FeedItem::Gap);
        let events = page.events.into_iter().filter(|event| self.filter.fits(event));
        Ok(gap.into_iter().chain(events.map(FeedItem::Event)).collect())
    }

    async fn wait(&mut self) {
        let signalled = async {
            loop {
                match self.signals.recv().await {
                    Ok(Signal::Events) | Err(RecvError::Lagged(_)) => return,
                    Ok(_) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        if tokio::time::timeout(POLL, signalled).await.is_ok() {
            tokio::time::sleep(READ_PAUSE).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
pub(crate) fn instant_now() -> Instant {
    Instant::now()
}
