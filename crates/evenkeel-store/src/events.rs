//! What happens, told to those who listen.
//!
//! Nothing is written down while nobody listens: then telling an event costs the look at one flag.
//! [`Events`] gathers what this process has to tell; a relay brings it to the store, which passes it
//! on to all nodes that share it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::{AttemptKey, JobId, JobNo, TenantNo, Timestamp};
use tokio::sync::Notify;

use crate::Scope;
use crate::verbs::verbs;

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
    /// Load is spread less evenly than somebody wants to be told.
    DistributionDegraded,
    /// Jobs are being moved so that load is even.
    RebalanceStarted,
    /// No more jobs are being moved; how it went is in its data.
    RebalanceFinished,
    /// A run has failed for good and was put on the dead-letter list.
    RunDead,
    /// A run has failed, and no retry follows.
    RunExhausted,
}

impl EventKind {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 15] = [
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
        Self::DistributionDegraded,
        Self::RebalanceStarted,
        Self::RebalanceFinished,
        Self::RunDead,
        Self::RunExhausted,
    ];

    /// Its number in a table.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The one with this number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

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
            Self::DistributionDegraded => "distribution.degraded",
            Self::RebalanceStarted => "rebalance.started",
            Self::RebalanceFinished => "rebalance.finished",
            Self::RunDead => "run.dead",
            Self::RunExhausted => "run.exhausted",
        }
    }
}

/// Which job an event is about, as far as its teller knows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EventJob {
    /// This one.
    Id(JobId),
    /// The one with this number, which is how engines know jobs. The store finds its id.
    No(JobNo),
    /// None.
    None,
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEvent {
    /// What it is about.
    pub kind: EventKind,
    /// Whose.
    pub tenant: TenantNo,
    /// Which job, if it is about one.
    pub job: EventJob,
    /// Which attempt, if it is about one.
    pub run: Option<AttemptKey>,
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
    /// What that job was called when the event was written down.
    pub job_name: Option<String>,
    /// Which attempt, if it is about one.
    pub run: Option<AttemptKey>,
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
    /// Some after the one asked for may be missing: they are not kept any more, or were lost before
    /// they could be written down. Said once, when something follows that can be read.
    pub gap: bool,
}

/// What people know a job by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobTitle {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: Option<String>,
    /// The name of what it is about.
    pub source_name: Option<String>,
}

verbs! {
    /// What happens, passed on between nodes.
    trait EventStore {
        /// What this process has to tell.
        fn events() -> &Events;
    }

    /// Writes down events in this order, after all that were written down before, and keeps the
    /// newest [`EVENTS_KEPT`], or up to a tenth more for each node. `dropped` says that others before them were lost: whoever reads
    /// across this place is told of a gap. That place counts as one of those kept.
    write fn publish(events: Vec<NewEvent>, dropped: bool) -> ();

    /// The place of the newest event; 0 if there is none.
    read fn newest_event() -> EventNo;

    /// The scope's events after `after`, looking at no more than `limit`.
    read fn events_after(scope: &Scope, after: EventNo, limit: u32) -> EventPage;

    /// Somebody listens on this handle's node until then, at least: all nodes are to tell. An
    /// earlier moment than one said before changes nothing.
    write fn listen(until: Timestamp) -> ();

    /// Until when somebody listens, on any node.
    read fn listened_until() -> Option<Timestamp>;

    /// What these jobs are known by, deleted ones too, in their order; `None` for one that never
    /// was.
    read fn job_titles(jobs: &[JobNo]) -> Vec<Option<JobTitle>>;
}

/// What this process has to tell, gathered until the relay takes it. Clones share it.
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
    /// Some before them were lost.
    dropped: bool,
}

impl Events {
    /// Does anybody listen? Ask before an event is made: this is all that telling costs otherwise.
    pub fn has_listeners(&self) -> bool {
        self.0.listened.load(Ordering::Relaxed)
    }

    /// Somebody listens from now on, or nobody does any more. What happened while nobody did is
    /// lost, which shows as a gap.
    pub fn set_has_listeners(&self, listened: bool) {
        let before = self.0.listened.swap(listened, Ordering::Relaxed);
        if before != listened {
            *self.lock() = Waiting { events: VecDeque::new(), dropped: listened };
            self.0.emitted.notify_one();
        }
    }

    /// Tells what happened, if anybody listens. Nobody waits for it to arrive.
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

    /// Takes up to `limit` of what waits, oldest first, and whether some before them were lost.
    pub fn take(&self, limit: usize) -> (Vec<NewEvent>, bool) {
        let mut waiting = self.lock();
        let count = waiting.events.len().min(limit);
        let taken = waiting.events.drain(..count).collect();
        (taken, std::mem::take(&mut waiting.dropped))
    }

    /// What was taken did not arrive, or nobody knows: it is lost.
    pub fn mark_gap(&self) {
        self.lock().dropped = true;
    }

    /// Waits until something is told, or somebody begins to listen.
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
    async fn nothing_is_kept_while_nobody_listens() {
        let events = Events::default();
        events.emit([event(1)]);
        assert_eq!(events.take(9), (vec![], false));
        events.set_has_listeners(true);
        events.emitted().await;
        events.emit([event(2), event(3)]);
        assert_eq!(events.take(1), (vec![event(2)], true), "what was before is lost");
        assert_eq!(events.take(9), (vec![event(3)], false));
        events.emit([event(4)]);
        events.set_has_listeners(true);
        assert_eq!(events.take(0), (vec![], false), "they listen already");
        events.set_has_listeners(false);
        assert_eq!(events.take(9), (vec![], false));
    }

    #[test]
    fn what_is_too_much_is_lost_oldest_first() {
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
    fn kinds_are_read_back() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(EventKind::from_code(-1), None);
        assert_eq!(EventKind::from_code(EventKind::ALL.len() as i16), None);
    }
}
