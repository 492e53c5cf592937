//! What happens, told to those who listen.
//!
//! Nothing is written down while nobody listens: then telling an event costs the look at one flag.
//! [`Events`] gathers what this process has to tell; a relay brings it to the store, which passes it
//! on to all nodes that share it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{JobId, RunKey, TenantNo, Timestamp};
use tokio::sync::Notify;

use crate::{Scope, StoreError};

/// Events that a store keeps, the newest ones.
pub const EVENTS_KEPT: usize = 10_000;

/// Events that wait for the relay at most; older ones are dropped, which shows as a gap.
const WAITING_MAX: usize = 10_000;

/// What an event is about.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// A job was created.
    JobCreated,
    /// A job was changed.
    JobUpdated,
    /// A job was paused.
    JobPaused,
    /// A job was resumed.
    JobResumed,
    /// A job was ended for good.
    JobCancelled,
    /// A job was deleted.
    JobDeleted,
    /// A job's condition has changed.
    JobCondition,
    /// Somebody asked for a run.
    RunRequested,
    /// An attempt has started.
    RunStarted,
    /// An attempt has ended; how is in its data.
    RunEnded,
}

impl EventKind {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 10] = [
        Self::JobCreated,
        Self::JobUpdated,
        Self::JobPaused,
        Self::JobResumed,
        Self::JobCancelled,
        Self::JobDeleted,
        Self::JobCondition,
        Self::RunRequested,
        Self::RunStarted,
        Self::RunEnded,
    ];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobCreated => "job.created",
            Self::JobUpdated => "job.updated",
            Self::JobPaused => "job.paused",
            Self::JobResumed => "job.resumed",
            Self::JobCancelled => "job.cancelled",
            Self::JobDeleted => "job.deleted",
            Self::JobCondition => "job.condition",
            Self::RunRequested => "run.requested",
            Self::RunStarted => "run.started",
            Self::RunEnded => "run.ended",
        }
    }
}

/// Which job an event is about, as far as its teller knows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EventJob {
    /// This one.
    Id(JobId),
    /// The job of this run: engines know jobs by number. The store finds its id.
    Of(RunKey),
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEvent {
    /// What it is about.
    pub kind: EventKind,
    /// Whose.
    pub tenant: TenantNo,
    /// Which job.
    pub job: EventJob,
    /// When.
    pub at: Timestamp,
    /// More about it: a JSON object.
    pub data: String,
}

/// An event's place among all: later ones have larger numbers, on all nodes and over restarts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventNo(pub i64);

/// An event as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its place.
    pub no: EventNo,
    /// What it is about.
    pub kind: EventKind,
    /// Whose.
    pub tenant: TenantNo,
    /// Which job, if it is still known.
    pub job: Option<JobId>,
    /// Which run.
    pub run: Option<RunKey>,
    /// When.
    pub at: Timestamp,
    /// More about it: a JSON object.
    pub data: String,
}

/// Events in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventPage {
    /// Those of the scope among the ones looked at.
    pub events: Vec<Event>,
    /// All after the one asked for, up to this one, were looked at.
    pub seen: EventNo,
    /// Some after the one asked for are not kept any more, or were never written down.
    pub gap: bool,
}

/// What happens, passed on between nodes.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// What this process has to tell.
    fn events(&self) -> &Events;

    /// Writes down events in this order, keeping the newest [`EVENTS_KEPT`]. `dropped` says that
    /// others before them were lost: whoever reads across this place is told of a gap.
    async fn publish(&self, events: Vec<NewEvent>, dropped: bool) -> Result<(), StoreError>;

    /// The place of the newest event.
    async fn newest_event(&self) -> Result<EventNo, StoreError>;

    /// The scope's events after `after`, looking at no more than `limit`.
    async fn events_after(
        &self,
        scope: &Scope,
        after: EventNo,
        limit: u32,
    ) -> Result<EventPage, StoreError>;

    /// Somebody listens on this node until then, at least: all nodes are to tell. Where nobody
    /// listened before, what is written down begins here.
    async fn listen(&self, until: Timestamp) -> Result<(), StoreError>;

    /// Until when somebody listens, on any node.
    async fn listened_until(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// What this process has to tell, gathered until the relay takes it. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Events(Arc<Inner>);

#[derive(Default, Debug)]
struct Inner {
    listened: AtomicBool,
    waiting: Mutex<VecDeque<NewEvent>>,
    dropped: AtomicU64,
    told: Notify,
}

impl Events {
    /// Does anybody listen? Ask before an event is made.
    pub fn are_listened(&self) -> bool {
        self.0.listened.load(Ordering::Relaxed)
    }

    /// Somebody listens from now on, or nobody does any more.
    pub fn set_listened(&self, listened: bool) {
        self.0.listened.store(listened, Ordering::Relaxed);
        if listened {
            self.0.told.notify_one();
        } else {
            self.lock().clear();
        }
    }

    /// Tells what happened, if anybody listens. Nobody waits for it to arrive.
    pub fn tell(&self, events: impl IntoIterator<Item = NewEvent>) {
        if !self.are_listened() {
            return;
        }
        let mut waiting = self.lock();
        waiting.extend(events);
        while waiting.len() > WAITING_MAX {
            waiting.pop_front();
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
        drop(waiting);
        self.0.told.notify_one();
    }

    /// Takes up to `limit` of what waits, oldest first, and how many were dropped before.
    pub fn take(&self, limit: usize) -> (Vec<NewEvent>, u64) {
        let mut waiting = self.lock();
        let count = waiting.len().min(limit);
        let taken = waiting.drain(..count).collect();
        (taken, self.0.dropped.swap(0, Ordering::Relaxed))
    }

    /// Waits until something is told, or somebody begins to listen.
    pub async fn told(&self) {
        self.0.told.notified().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<NewEvent>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
