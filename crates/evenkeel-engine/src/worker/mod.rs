//! Runs bodies: starts them, watches over them, and passes on how they ended.

mod backlog;
pub(crate) mod canceller;
pub(crate) mod claimer;
mod early_messages;
pub(crate) mod finisher;
pub(crate) mod inbox;
pub(crate) mod open_attempt;
mod open_attempts;
pub(crate) mod page_store;
pub(crate) mod recorder;
mod run_body;
pub(crate) mod slots;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::lease::Fence;
use evenkeel_core::run::{Loss, Outcome};
use evenkeel_core::{AttemptKey, RunIds, TenantNo};
use evenkeel_executors::{CancelReason, Invocation, Lease, Registry, Report, Wire, cancellation};
use evenkeel_store::{Finish, MessageKind, NodeMessage};
use futures::FutureExt;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, mpsc};
use tracing::error;

use crate::clock::Clock;
use crate::cluster::db_clock::DbClock;
use crate::insight::run_stats::PendingStats;
use crate::upkeep::limit_release::HeldPermits;
use crate::worker::open_attempt::{AttemptStage, AttemptToStart, OpenAttempt, finish_of, refused};
use crate::worker::slots::Slots;

use self::early_messages::EarlyMessages;

/// Ended bodies that the store may not know of before no more are started.
const UNSTORED_MAX: usize = 8192;

/// All bodies of one incarnation of a node.
pub struct Worker {
    /// The places for bodies.
    pub slots: Arc<Slots>,
    /// What the store says this node has and what it knows may differ.
    pub needs_reconcile: AtomicBool,
    /// How runs ended, until it is written down.
    pub stats: PendingStats,
    /// Who has places under limits.
    pub permits: HeldPermits,
    backlog: AtomicBool,
    queued: AtomicU64,
    claimed: AtomicU64,
    claiming: AtomicUsize,
    arrivals: Notify,
    open: Mutex<FxHashMap<AttemptKey, OpenAttempt>>,
    /// This process did not run for longer than its lease, the last time it lost contact.
    pub was_frozen: AtomicBool,
    early: Mutex<EarlyMessages>,
    registry: Arc<Registry>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    db_clock: Arc<DbClock>,
    chance: Arc<dyn Chance>,
    run_ids: RunIds,
    ended: mpsc::UnboundedSender<Finish>,
    log_bytes: usize,
}

/// What a worker is made of.
pub struct WorkerParts {
    pub slots: Arc<Slots>,
    pub registry: Arc<Registry>,
    pub lease: Lease,
    pub clock: Arc<dyn Clock>,
    pub db_clock: Arc<DbClock>,
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
    /// Receives the end of every body.
    pub ended: mpsc::UnboundedSender<Finish>,
    /// About how many bytes of an attempt's output are kept.
    pub log_bytes: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    pub fn new(parts: WorkerParts) -> Self {
        Self {
            slots: parts.slots,
            needs_reconcile: AtomicBool::new(false),
            stats: PendingStats::default(),
            permits: HeldPermits::default(),
            backlog: AtomicBool::new(false),
            queued: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
            claiming: AtomicUsize::new(0),
            arrivals: Notify::new(),
            open: Mutex::default(),
            was_frozen: AtomicBool::new(false),
            early: Mutex::default(),
            registry: parts.registry,
            lease: parts.lease,
            clock: parts.clock,
            db_clock: parts.db_clock,
            chance: parts.chance,
            run_ids: parts.run_ids,
            ended: parts.ended,
            log_bytes: parts.log_bytes,
        }
    }

    /// Takes up to `wanted` places; fewer if the store is far behind in learning how bodies ended.
    pub fn take_slots(&self, wanted: usize) -> usize {
        let behind = self.open_count().saturating_sub(self.slots.total());
        self.slots.take(wanted.min(UNSTORED_MAX.saturating_sub(behind)))
    }

    /// Starts the body of an attempt that has a place.
    ///
    /// If the lease ran out while the claim was on its way, somebody else may have it by now: then
    /// no body starts, and the reconciler gives the attempt back if it is still this node's.
    pub fn start(self: &Arc<Self>, attempt: AttemptToStart) {
        let (key, fence) = (attempt.key, attempt.fence);
        let (handle, cancel) = cancellation();
        let wire = Wire::new(attempt.started_at, self.log_bytes);
        let mut open = OpenAttempt::new(&attempt, handle, wire.clone(), self.clock.monotonic());
        let mut all = lock(&self.open);
        // What was lost starts again under a new right, or if it had no body.
        let may_start = |known: &OpenAttempt| {
            let lost = known.lost();
            lost.is_some_and(|lost| known.fence < fence || !lost.loss.body_may_have_started())
        };
        if let Some(known) = all.get(&key).filter(|known| !may_start(known)) {
            if known.fence < fence {
                // It went back into the queue by somebody's word, and its old body is not gone yet:
                // as soon as that is, the attempt is found to be nobody's and goes back once more.
                self.needs_reconcile.store(true, Ordering::Release);
            } else {
                let id = self.run_ids.attempt_id(key);
                error!(run.id = %id, "an attempt was to start that is open already");
            }
            return self.slots.give(1);
        }
        if self.lease.remaining() == Some(Duration::ZERO) {
            open.lose(Loss::NeverStarted, self.db_clock.now());
            all.insert(key, open);
            self.needs_reconcile.store(true, Ordering::Release);
            return self.slots.give(1);
        }
        {
            let mut early = lock(&self.early);
            let cancel = early.take_cancel(key);
            if early.take_settled(key, fence) {
                // The letter was quicker than the answer to the claim: nobody waits for a body.
                self.drop_overridden(attempt.tenant, key);
                return self.slots.give(1);
            }
            if let Some(reason) = cancel {
                open.cancel.cancel(reason);
            }
        }
        let invocation = Invocation {
            key,
            id: self.run_ids.attempt_id(key),
            fence,
            tenant: attempt.tenant,
            started_at: attempt.started_at,
            definition: Arc::clone(&attempt.definition),
            checkpoint: attempt.checkpoint,
            cancel,
            lease: self.lease.clone(),
            wire,
        };
        let (worker, printed) = (Arc::clone(self), open.wire.clone());
        // Spawned under the lock: its end cannot be looked for before it is there.
        let task = tokio::spawn(async move {
            let report = AssertUnwindSafe(worker.run_body(invocation)).catch_unwind().await;
            let mut report = report.unwrap_or_else(|_| Report::failed("its executor panicked"));
            report.output = printed.take_log().or(report.output);
            worker.body_ended(key, fence, report);
        });
        open.task = Some(task.abort_handle());
        all.insert(key, open);
    }

    /// Passes on how a body ended, and frees its place.
    fn body_ended(&self, key: AttemptKey, fence: Fence, report: Report) {
        let mut all = lock(&self.open);
        self.slots.give(1);
        let Some(open) = all.get_mut(&key).filter(|open| open.fence == fence) else { return };
        let was_ended = report.outcome == Outcome::Cancelled;
        match open.cancel.reason() {
            // Nobody asked for it: the body itself saw its lease end. What ended well or badly in
            // spite of that is reported; the fence tells if it still counts.
            None | Some(CancelReason::LeaseLost) if was_ended => {
                open.lose(Loss::StoreUnreachable, self.db_clock.now());
                self.needs_reconcile.store(true, Ordering::Release);
            }
            Some(CancelReason::Settled) => {
                self.drop_overridden(open.tenant(), key);
                all.remove(&key);
            }
            Some(CancelReason::ShuttingDown) if was_ended => {
                open.lose(Loss::NodeDrained, self.db_clock.now());
            }
            Some(_) | None => {
                open.stage = AttemptStage::Ended;
                let took = self.clock.monotonic().saturating_sub(open.since);
                let finish = finish_of(key, open, report, took.into(), self.chance.unit());
                // The finisher is gone only when the whole incarnation is.
                let _ = self.ended.send(finish);
            }
        }
    }

    /// An attempt has no body here, and somebody else has said how it goes on.
    fn drop_overridden(&self, tenant: TenantNo, key: AttemptKey) {
        self.stats.settled(tenant, key);
        self.permits.release([key]);
    }

    /// An attempt that this node has cannot start, ever: it has failed. It needs no place.
    pub fn refuse(&self, attempt: &evenkeel_store::OwnedAttempt, why: &str) {
        let id = self.run_ids.attempt_id(attempt.key);
        error!(run.id = %id, "a run cannot start: {why}");
        let _ = self.ended.send(refused(attempt, why));
    }

    /// The store knows how these attempts ended, or that they are somebody else's.
    pub fn stored<'a>(&self, ends: impl IntoIterator<Item = &'a Finish>) {
        let mut open = lock(&self.open);
        for end in ends {
            let is_it = |known: &OpenAttempt| known.fence == end.fence && known.lost().is_none();
            if open.get(&end.key).is_some_and(is_it) {
                open.remove(&end.key);
            }
        }
    }

    /// The store refuses the end of an attempt: its result is lost.
    pub fn end_refused(&self, end: &Finish) {
        let mut all = lock(&self.open);
        if let Some(open) = all.get_mut(&end.key).filter(|open| open.fence == end.fence) {
            open.lose(Loss::EndRefused, end.finished_at);
            self.needs_reconcile.store(true, Ordering::Release);
        }
    }

    /// These lost attempts were given back, or never were this node's any more.
    pub fn forget_lost(&self, lost: &[(AttemptKey, Fence)]) {
        let mut all = lock(&self.open);
        for (key, fence) in lost {
            let is_it = |open: &OpenAttempt| open.fence == *fence && open.lost().is_some();
            if all.get(key).is_some_and(is_it) {
                all.remove(key);
            }
        }
        drop(all);
        self.permits.release(lost.iter().map(|(key, _)| *key));
    }

    /// Passes a word from afar on to a body, if it still runs under that fence. That an attempt is
    /// settled is kept for one that has not started yet: nobody says it twice.
    pub fn deliver(&self, message: NodeMessage) {
        let NodeMessage { key, fence, kind: word } = message;
        let all = lock(&self.open);
        let known = all.get(&key);
        match (word, known.filter(|open| open.fence == fence)) {
            (MessageKind::Heartbeat, Some(open)) => open.wire.sign_of_life(),
            (MessageKind::Ended, Some(open)) => open.cancel.cancel(CancelReason::Settled),
            (MessageKind::Ended, None) if known.is_none_or(|open| open.fence < fence) => {
                lock(&self.early).settle(key, fence);
            }
            (MessageKind::Heartbeat | MessageKind::Ended, None) => {}
        }
    }

    /// Lets bodies go that run under a right that this node no longer has. Says how many.
    pub fn cancel_disowned(&self, lost: impl Iterator<Item = (AttemptKey, Fence)>) -> usize {
        let all = lock(&self.open);
        let runs = |(key, fence)| {
            let open = all.get(&key)?;
            (open.fence == fence && open.stage == AttemptStage::Running).then_some(open)
        };
        let bodies = lost.filter_map(runs).filter(|open| open.cancel.reason().is_none());
        bodies.map(|open| open.cancel.cancel(CancelReason::Settled)).count()
    }

    /// Asks a body to end; if it has not started yet, as soon as it does.
    pub fn cancel(&self, key: AttemptKey, reason: CancelReason) {
        match lock(&self.open).get(&key) {
            Some(open) => open.cancel.cancel(reason),
            None => lock(&self.early).cancel(key, reason),
        }
    }

    /// Asks all bodies to end.
    pub fn cancel_all(&self, reason: CancelReason) {
        for open in lock(&self.open).values().filter(|open| open.stage == AttemptStage::Running) {
            open.cancel.cancel(reason);
        }
    }

    /// Ends all bodies where they stand, as the end of the process would.
    pub fn abort_all(&self) {
        for open in lock(&self.open).values() {
            if let Some(task) = &open.task {
                task.abort();
            }
        }
    }
}

#[cfg(test)]
mod tests;
