//! Events for clients that follow the event stream.
//!
//! Events are stored only while a client listens; otherwise emitting an event only checks one flag.
//! [`Events`] collects the events of this process. The engine's event publisher stores events, and
//! all nodes that share the store read them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::{AttemptKey, JobId, JobNo, TenantNo, Timestamp, named_enum};
use tokio::sync::Notify;

use crate::Scope;
use crate::verbs::verbs;

/// Number of newest events that a store keeps.
pub const EVENTS_KEPT: usize = 10_000;

/// Maximum number of events that wait for the event publisher. If more events wait, the oldest
/// events are dropped, and readers get a gap marker.
const WAITING_MAX: usize = 10_000;

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
    pub enum EventKind {
        JobCreated => "job.created",
        JobUpdated => "job.updated",
        JobPaused => "job.paused",
        JobResumed => "job.resumed",
        JobCancelled => "job.cancelled",
        JobDeleted => "job.deleted",
        /// The condition (OK, WARNING or ERROR) of a job has changed.
        JobCondition => "job.condition",
        /// A user triggered a run.
        RunRequested => "run.requested",
        /// An attempt has started.
        RunStarted => "run.started",
        /// An attempt has finished.
        RunEnded => "run.ended",
        /// The balance score (how evenly runs are spread over time) has fallen below its threshold.
        DistributionDegraded => "distribution.degraded",
        RebalanceStarted => "rebalance.started",
        RebalanceFinished => "rebalance.finished",
        /// A run has failed, is not retried, and left a dead letter.
        RunDead => "run.dead",
        /// A run has failed, and no retry follows.
        RunExhausted => "run.exhausted",
    }
}

impl EventKind {
    /// The stored code.
    pub const fn code(self) -> i16 {
        self as i16
    }

    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

/// The job of an event, by id or by internal number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EventJob {
    Id(JobId),
    /// The internal job number that schedulers and workers use; the store looks up the job id.
    No(JobNo),
    None,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEvent {
    pub kind: EventKind,
    pub tenant: TenantNo,
    pub job: EventJob,
    /// The attempt that the event is about.
    pub run: Option<AttemptKey>,
    pub at: Timestamp,
    /// A JSON object.
    pub data: String,
}

/// The position of an event. Later events have higher numbers, across all nodes and restarts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventNo(pub i64);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub no: EventNo,
    pub kind: EventKind,
    pub tenant: TenantNo,
    /// Job of the event; `None` if the event is about no job or the job is unknown.
    pub job: Option<JobId>,
    /// Name of the job at the time when the event was stored.
    pub job_name: Option<String>,
    /// The attempt that the event is about.
    pub run: Option<AttemptKey>,
    pub at: Timestamp,
    /// A JSON object.
    pub data: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventPage {
    /// The tenant's events among all events that were read.
    pub events: Vec<Event>,
    /// Number of the last event that was read.
    pub seen: EventNo,
    /// True if events after the requested position may be missing, because they were dropped before
    /// or after they were stored. A gap is reported once, as soon as a later event can be read.
    pub gap: bool,
}

/// The names that users see for a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobTitle {
    pub id: JobId,
    pub name: Option<String>,
    pub source_name: Option<String>,
}

verbs! {
    trait EventStore {
        /// Events of this process that wait to be published.
        fn events() -> &Events;
    }

    /// Appends events in the given order and keeps the newest [`EVENTS_KEPT`] events. The store may
    /// temporarily keep up to 10 % more than [`EVENTS_KEPT`] events per node. `dropped` means that
    /// earlier events were lost, so readers at this position get a gap marker. The gap marker
    /// counts as one stored event.
    write fn publish(events: Vec<NewEvent>, dropped: bool) -> ();

    /// Returns the number of the newest event, or 0 if no event is stored.
    read fn newest_event() -> EventNo;

    /// Returns the tenant's events after `after`. Reads up to `limit` events of all tenants.
    read fn events_after(scope: &Scope, after: EventNo, limit: u32) -> EventPage;

    /// Announces that a client listens until at least `until`, so that all nodes emit events. An
    /// `until` before the time that is already announced has no effect.
    write fn listen(until: Timestamp) -> ();

    /// Returns the time until which a client of any node listens for events.
    read fn listened_until() -> Option<Timestamp>;

    /// Returns the names of the given jobs in the given order, even of deleted jobs; `None` for an
    /// unknown job.
    read fn job_titles(jobs: &[JobNo]) -> Vec<Option<JobTitle>>;
}

/// Events of this process that wait for the event publisher. All clones share one queue.
#[derive(Clone, Default, Debug)]
pub struct Events(Arc<Inner>);

#[derive(Default, Debug)]
struct Inner {
    listened: AtomicBool,
    waiting: Mutex<Waiting>,
    emitted: Notify,
}

#[derive(Default, Debug)]
struct Waiting {
    events: VecDeque<NewEvent>,
    /// True if events that came before those in `events` were lost.
    dropped: bool,
}

impl Events {
    /// Returns true if a client listens for events. Check for listeners before you build an event.
    pub fn has_listeners(&self) -> bool {
        self.0.listened.load(Ordering::Relaxed)
    }

    /// Events that happen while no client listens are lost, so the next readers get a gap marker.
    pub fn set_has_listeners(&self, listened: bool) {
        let before = self.0.listened.swap(listened, Ordering::Relaxed);
        if before != listened {
            *self.lock() = Waiting { events: VecDeque::new(), dropped: listened };
            self.0.emitted.notify_one();
        }
    }

    /// Queues events for the event publisher if a client listens. `emit` does not wait until the
    /// events are stored.
    pub fn emit(&self, events: impl IntoIterator<Item = NewEvent>) {
        if !self.has_listeners() {
            return;
        }
        let mut waiting = self.lock();
        waiting.events.extend(events);
        while waiting.events.len() > WAITING_MAX {
            waiting.events.pop_front();
            waiting.dropped = true;
        }
        let any = !waiting.events.is_empty();
        drop(waiting);
        if any {
            self.0.emitted.notify_one();
        }
    }

    /// Takes up to `limit` queued events, oldest first. Also returns true if events before the
    /// returned events were lost.
    pub fn take(&self, limit: usize) -> (Vec<NewEvent>, bool) {
        let mut waiting = self.lock();
        let count = waiting.events.len().min(limit);
        let taken = waiting.events.drain(..count).collect();
        (taken, std::mem::take(&mut waiting.dropped))
    }

    /// Records that the events returned by the last [`take`](Self::take) may be lost.
    pub fn mark_gap(&self) {
        self.lock().dropped = true;
    }

    /// Waits until an event is emitted or the first client listens.
    pub async fn emitted(&self) {
        self.0.emitted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(no: i64) -> NewEvent {
        NewEvent {
            kind: EventKind::RunStarted,
            tenant: TenantNo(1),
            job: EventJob::No(JobNo(no)),
            run: None,
            at: Timestamp::from_micros(no),
            data: "{}".into(),
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_without_a_listener() {
        let events = Events::default();
        events.emit([event(1)]);
        assert_eq!(events.take(9), (vec![], false));
        events.set_has_listeners(true);
        events.emitted().await;
        events.emit([event(2), event(3)]);
        assert_eq!(events.take(1), (vec![event(2)], true), "earlier events are lost");
        assert_eq!(events.take(9), (vec![event(3)], false));
        events.emit([event(4)]);
        events.set_has_listeners(true);
        assert_eq!(events.take(0), (vec![], false), "clients already listened");
        events.set_has_listeners(false);
        assert_eq!(events.take(9), (vec![], false));
    }

    #[test]
    fn surplus_events_are_dropped_oldest_first() {
        let events = Events::default();
        events.set_has_listeners(true);
        assert!(events.take(0).1);
        events.emit((0..WAITING_MAX as i64 + 2).map(event));
        let (taken, dropped) = events.take(1);
        assert_eq!((taken, dropped), (vec![event(2)], true));
        events.mark_gap();
        assert!(events.take(0).1);
    }

    #[test]
    fn event_kinds_are_read_back_from_their_codes() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(EventKind::from_code(-1), None);
        assert_eq!(EventKind::from_code(EventKind::ALL.len() as i16), None);
    }
}
