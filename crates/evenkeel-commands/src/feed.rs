//! Listening to what happens.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::{JobId, Span};
use evenkeel_store::{Event, EventKind, EventNo, Scope, Signal, Store, StoreError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::CommandError;

/// Nodes go on telling for so long after somebody was last heard to listen: whoever comes back within
/// this time misses nothing.
const LISTENS_FOR: Span = Span::from_secs(60);
/// That somebody listens is said this often.
const RENEW_EVERY: Duration = Duration::from_secs(5);
/// Events looked at in one go.
const PAGE: u32 = 500;
/// A lost wake-up costs this much.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks, so that what happens together is read together.
const GAP: Duration = Duration::from_millis(50);
/// Within this time all nodes have heard that somebody listens. Until then they say that what they
/// did before is missing, which whoever begins now does not want to know.
const BEGINNING: Duration = Duration::from_secs(2);

/// Which events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// Of these kinds; of all if there are none.
    pub kinds: Vec<EventKind>,
    /// About this job.
    pub job: Option<JobId>,
}

impl EventFilter {
    fn fits(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.job.is_none_or(|job| event.job == Some(job))
    }
}

/// What whoever listens hears.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// Something happened.
    Event(Event),
    /// Before what follows, something may be missing.
    Gap,
}

/// Lets people listen.
#[derive(Clone)]
pub struct Feed {
    store: Arc<dyn Store>,
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl Feed {
    /// What happens in `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, renewed: Arc::default() }
    }

    /// Listens to the scope's events after `after`, or from now on.
    pub async fn listen(
        &self,
        scope: &Scope,
        filter: EventFilter,
        after: Option<EventNo>,
    ) -> Result<Listening, CommandError> {
        if let Some(job) = filter.job
            && self.store.get(scope, job).await?.is_none()
        {
            return Err(CommandError::NotFound);
        }
        let signals = self.store.signals().subscribe();
        self.renew().await?;
        self.wait_until_told().await;
        let newest = self.store.newest_event().await?;
        Ok(Listening {
            feed: self.clone(),
            scope: *scope,
            filter,
            // A place that was never reached is one of another database.
            at: after.unwrap_or(newest).min(newest),
            owes_gap: after.is_some_and(|after| after > newest),
            began: after.is_none().then(instant_now),
            signals,
        })
    }

    /// Says that somebody listens, now and then.
    async fn renew(&self) -> Result<(), StoreError> {
        let now = instant_now();
        let renewed = || self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = renewed().is_some_and(|then| now.duration_since(then) < RENEW_EVERY);
        if is_recent && self.store.events().has_listeners() {
            return Ok(());
        }
        let until = self.store.now().await?.saturating_add(LISTENS_FOR);
        self.store.listen(until).await?;
        *renewed() = Some(now);
        Ok(())
    }

    /// Waits until this node tells what it does, so that nothing is missed that happens after the
    /// answer. If nobody relays, there is nothing to wait for.
    async fn wait_until_told(&self) {
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

/// Somebody who listens.
pub struct Listening {
    feed: Feed,
    scope: Scope,
    filter: EventFilter,
    at: EventNo,
    owes_gap: bool,
    began: Option<Instant>,
    signals: broadcast::Receiver<Signal>,
}

impl Listening {
    /// Everything up to here was heard.
    pub fn at(&self) -> EventNo {
        self.at
    }

    /// Waits for news. May be given up at any moment without losing any.
    pub async fn next(&mut self) -> Result<Vec<News>, CommandError> {
        if std::mem::take(&mut self.owes_gap) {
            return Ok(vec![News::Gap]);
        }
        loop {
            let before = self.at;
            match self.look().await {
                Ok(news) if !news.is_empty() => return Ok(news),
                // All that was looked at is somebody else's; more may wait.
                Ok(_) if self.at > before => {}
                Ok(_) => self.wait().await,
                Err(error) if error.is_outage() => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "those who listen wait for the store"
                    );
                    tokio::time::sleep(POLL).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn look(&mut self) -> Result<Vec<News>, StoreError> {
        self.feed.renew().await?;
        let page = self.feed.store.events_after(&self.scope, self.at, PAGE).await?;
        // Nothing is waited for from here on: what is noted as heard is returned.
        self.at = page.seen;
        let is_beginning =
            self.began.is_some_and(|began| instant_now().duration_since(began) < BEGINNING);
        let gap = (page.gap && !is_beginning).then_some(News::Gap);
        let events = page.events.into_iter().filter(|event| self.filter.fits(event));
        Ok(gap.into_iter().chain(events.map(News::Event)).collect())
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
            tokio::time::sleep(GAP).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
fn instant_now() -> Instant {
    Instant::now()
}
