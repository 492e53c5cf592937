//! Runs attempts. The body of an attempt is its program, HTTP call or crawl.
//!
//! [`claimer`] claims queued attempts, [`finisher`] stores results and [`recorder`] stores
//! progress. [`canceller`] and [`inbox`] receive requests about running attempts. [`Worker`] holds
//! all open attempts of the node, and [`slots`] limits how many attempts run at once.

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
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::attempt::{Loss, Outcome};
use evenkeel_core::chance::Chance;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, RunIds, TenantNo};
use evenkeel_executors::{
    CancelReason, Invocation, Lease, LiveReport, Registry, Report, cancellation,
};
use evenkeel_store::{Finish, MessageKind, NodeMessage};
use futures::FutureExt;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, mpsc};
use tracing::error;

use crate::clock::Clock;
use crate::cluster::db_clock::DbClock;
use crate::insight::run_stats::PendingStats;
use crate::scheduler::due_jobs::LaneRanks;
use crate::sync::lock;
use crate::upkeep::limit_release::HeldPermits;
use crate::worker::open_attempt::{AttemptStage, AttemptToStart, OpenAttempt, finish_of};
use crate::worker::slots::Slots;

use self::early_messages::EarlyMessages;

/// Maximum number of finished attempts whose result is not stored yet. A node with this many
/// unstored results starts no further attempts.
const UNSTORED_MAX: usize = 8192;

/// All open attempts of this node, from their start until their result is stored.
pub struct Worker {
    pub slots: Arc<Slots>,
    /// True if the store may list this node as the owner of attempts that the node does not know
    /// of.
    pub needs_reconcile: AtomicBool,
    /// Totals of ended runs that are not written to the store yet.
    pub stats: PendingStats,
    pub permits: HeldPermits,
    backlog: AtomicBool,
    /// The lowest rank per lane of the attempts that were queued since the backlog began.
    lowest_queued: Mutex<LaneRanks>,
    queued: AtomicU64,
    claimed: AtomicU64,
    claiming: AtomicUsize,
    arrivals: Notify,
    open: Mutex<FxHashMap<AttemptKey, OpenAttempt>>,
    /// True if the whole process was suspended when its last lease expired.
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

pub struct WorkerParts {
    pub slots: Arc<Slots>,
    pub registry: Arc<Registry>,
    pub lease: Lease,
    pub clock: Arc<dyn Clock>,
    pub db_clock: Arc<DbClock>,
    pub chance: Arc<dyn Chance>,
    pub run_ids: RunIds,
    /// Sends the result of every attempt to the finisher.
    pub ended: mpsc::UnboundedSender<Finish>,
    /// Approximate limit of stored output per attempt, in bytes.
    pub log_bytes: usize,
}

impl Worker {
    pub fn new(parts: WorkerParts) -> Self {
        Self {
            slots: parts.slots,
            needs_reconcile: AtomicBool::new(false),
            stats: PendingStats::default(),
            permits: HeldPermits::default(),
            backlog: AtomicBool::new(false),
            lowest_queued: Mutex::default(),
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

    /// Takes up to `wanted` worker slots, or fewer if many results are not stored yet.
    pub fn take_slots(&self, wanted: usize) -> usize {
        let behind = self.open_count().saturating_sub(self.slots.total());
        self.slots.take(wanted.min(UNSTORED_MAX.saturating_sub(behind)))
    }

    /// Starts an attempt for which a worker slot was taken.
    ///
    /// After the node's lease has ended, another node may own the attempt, so it is not started. If
    /// this node still owns the attempt, the reconciler requeues or fails it.
    pub fn start(self: &Arc<Self>, attempt: AttemptToStart) {
        let (key, fence) = (attempt.key, attempt.fence);
        let (handle, cancel) = cancellation();
        let live = LiveReport::new(attempt.started_at, self.log_bytes);
        let mut open = OpenAttempt::new(&attempt, handle, live.clone(), self.clock.monotonic());
        let mut all = lock(&self.open);
        // A lost attempt may start again if its new fence is higher or if it certainly never ran.
        let may_start = |known: &OpenAttempt| {
            let lost = known.lost();
            lost.is_some_and(|lost| known.fence < fence || !lost.loss.body_may_have_started())
        };
        if let Some(known) = all.get(&key).filter(|known| !may_start(known)) {
            if known.fence < fence {
                // An outcome override requeued the attempt and this node claimed it again, but its
                // old execution still runs here. After the old execution has ended, the reconciler
                // requeues the attempt.
                self.needs_reconcile.store(true, Ordering::Release);
            } else {
                let id = self.run_ids.attempt_id(key);
                error!(run.id = %id, "an attempt that is running on this node was claimed again; ignoring the claim");
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
            if early.take_ended(key, fence) {
                // The message about an outcome override arrived before the answer to the claim. The
                // outcome of the attempt is already stored, so the attempt is not started.
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
            live,
        };
        let (worker, printed) = (Arc::clone(self), open.live.clone());
        // The task is spawned while `self.open` is locked, so the attempt cannot finish before it
        // is inserted there.
        let task = tokio::spawn(async move {
            let report = AssertUnwindSafe(worker.run_body(invocation)).catch_unwind().await;
            let mut report = report.unwrap_or_else(|_| Report::failed("the executor panicked"));
            report.output = printed.take_log().or(report.output);
            worker.body_ended(key, fence, report);
        });
        open.task = Some(task.abort_handle());
        all.insert(key, open);
    }

    /// Sends the result of an attempt to the finisher and frees its worker slot.
    fn body_ended(&self, key: AttemptKey, fence: Fence, report: Report) {
        let mut all = lock(&self.open);
        self.slots.give(1);
        let Some(open) = all.get_mut(&key).filter(|open| open.fence == fence) else { return };
        let was_ended = report.outcome == Outcome::Cancelled;
        match open.cancel.reason() {
            // The attempt was cancelled because the node's lease ended. If a cancelled attempt has
            // succeeded or failed nevertheless, its result is sent to the store. The store accepts
            // the result if the fence is still valid.
            None | Some(CancelReason::LeaseLost) if was_ended => {
                open.lose(Loss::StoreUnreachable, self.db_clock.now());
                self.needs_reconcile.store(true, Ordering::Release);
            }
            Some(CancelReason::EndReported) => {
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
                // Sending fails only after the node's session has ended and the finisher was
                // dropped.
                let _ = self.ended.send(finish);
            }
        }
    }

    /// Updates statistics and permits for an overridden attempt that does not run on this node any
    /// more.
    fn drop_overridden(&self, tenant: TenantNo, key: AttemptKey) {
        self.stats.ended_elsewhere(tenant, key);
        self.permits.release([key]);
    }

    /// Sends the failed result of an attempt that can never start to the finisher. Needs no worker
    /// slot.
    pub fn refuse(&self, end: Finish) {
        let (id, why) = (self.run_ids.attempt_id(end.key), end.results.error.as_deref());
        error!(run.id = %id, reason = why, "attempt cannot be started; marking it as failed");
        let _ = self.ended.send(end);
    }

    /// Removes open attempts whose result is stored, or which another node owns now.
    pub fn stored<'a>(&self, ends: impl IntoIterator<Item = &'a Finish>) {
        let mut open = lock(&self.open);
        for end in ends {
            let is_it = |known: &OpenAttempt| known.fence == end.fence && known.lost().is_none();
            if open.get(&end.key).is_some_and(is_it) {
                open.remove(&end.key);
            }
        }
    }

    /// Marks an attempt as lost, because the store refuses its result.
    pub fn end_refused(&self, end: &Finish) {
        let mut all = lock(&self.open);
        if let Some(open) = all.get_mut(&end.key).filter(|open| open.fence == end.fence) {
            open.lose(Loss::EndRefused, end.finished_at);
            self.needs_reconcile.store(true, Ordering::Release);
        }
    }

    /// Removes lost attempts that were requeued or failed, or that another node owns now.
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

    /// Delivers a message to the running attempt with the fence of the message. A message about an
    /// outcome override is sent only once, so it is kept if the attempt has not started yet.
    pub fn deliver(&self, message: NodeMessage) {
        let NodeMessage { key, fence, kind: word } = message;
        let all = lock(&self.open);
        let known = all.get(&key);
        match (word, known.filter(|open| open.fence == fence)) {
            (MessageKind::Heartbeat, Some(open)) => open.live.heartbeat(),
            (MessageKind::Ended, Some(open)) => open.cancel.cancel(CancelReason::EndReported),
            (MessageKind::Ended, None) if known.is_none_or(|open| open.fence < fence) => {
                lock(&self.early).end(key, fence);
            }
            (MessageKind::Heartbeat | MessageKind::Ended, None) => {}
        }
    }

    /// Cancels running attempts that this node no longer owns. Returns how many.
    pub fn cancel_disowned(&self, lost: impl Iterator<Item = (AttemptKey, Fence)>) -> usize {
        let all = lock(&self.open);
        let runs = |(key, fence)| {
            let open = all.get(&key)?;
            (open.fence == fence && open.stage == AttemptStage::Running).then_some(open)
        };
        let bodies = lost.filter_map(runs).filter(|open| open.cancel.reason().is_none());
        bodies.map(|open| open.cancel.cancel(CancelReason::EndReported)).count()
    }

    /// Cancels a running attempt. If the attempt has not started yet, it is cancelled as soon as it
    /// starts.
    pub fn cancel(&self, key: AttemptKey, reason: CancelReason) {
        match lock(&self.open).get(&key) {
            Some(open) => open.cancel.cancel(reason),
            None => lock(&self.early).cancel(key, reason),
        }
    }

    pub fn cancel_all(&self, reason: CancelReason) {
        for open in lock(&self.open).values().filter(|open| open.stage == AttemptStage::Running) {
            open.cancel.cancel(reason);
        }
    }

    /// Aborts all running attempts without cleanup, as a crash would.
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
