//! Runs bodies: starts them, watches over them, and passes on how they ended.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::lease::Fence;
use evenkeel_core::run::Outcome;
use evenkeel_core::{Definition, RunKey, Timestamp};
use evenkeel_executors::{CancelReason, Invocation, Lease, Registry, Report, Wire, cancellation};
use evenkeel_store::{Finish, Letter, LongRun, Note, Word};
use futures::FutureExt;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, mpsc};
use tracing::{error, warn};

use crate::attempt::{
    Attempt, Interrupted, Open, Stage, finish_of, note_of, refused, unsaved_note,
};
use crate::clock::Clock;
use crate::slots::Slots;

/// Ended bodies that the store may not know of before no more are started.
const UNSTORED_MAX: usize = 8192;
/// Cancellations that may wait for their body to start.
const EARLY_CANCELS_MAX: usize = 1024;

/// All bodies of one incarnation of a node.
pub struct Worker {
    /// The places for bodies.
    pub slots: Arc<Slots>,
    /// What the store says this node has and what it knows may differ.
    pub doubt: AtomicBool,
    backlog: AtomicBool,
    queued: AtomicU64,
    arrivals: Notify,
    open: Mutex<FxHashMap<RunKey, Open>>,
    interrupted: Mutex<Vec<Interrupted>>,
    early_cancels: Mutex<BTreeSet<RunKey>>,
    registry: Arc<Registry>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    ended: mpsc::UnboundedSender<Finish>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// A worker without bodies. How they end is sent to `ended`.
    pub fn new(
        slots: Arc<Slots>,
        registry: Arc<Registry>,
        lease: Lease,
        clock: Arc<dyn Clock>,
        chance: Arc<dyn Chance>,
        ended: mpsc::UnboundedSender<Finish>,
    ) -> Self {
        Self {
            slots,
            doubt: AtomicBool::new(false),
            backlog: AtomicBool::new(false),
            queued: AtomicU64::new(0),
            arrivals: Notify::new(),
            open: Mutex::default(),
            interrupted: Mutex::default(),
            early_cancels: Mutex::default(),
            registry,
            lease,
            clock,
            chance,
            ended,
        }
    }

    /// Takes up to `wanted` places; fewer if the store is far behind in learning how bodies ended.
    pub fn take_places(&self, wanted: usize) -> usize {
        let behind = self.open_count().saturating_sub(self.slots.total());
        self.slots.take(wanted.min(UNSTORED_MAX.saturating_sub(behind)))
    }

    /// Starts the body of an attempt that has a place.
    ///
    /// If the lease ran out while the claim was on its way, somebody else may have it by now: then
    /// no body starts, and the reconciler gives the attempt back if it is still this node's.
    pub fn start(self: &Arc<Self>, attempt: Attempt) {
        let (key, fence) = (attempt.key, attempt.fence);
        let (handle, cancel) = cancellation();
        let wire = Wire::default();
        let mut open = Open::new(&attempt, handle, wire.clone(), self.clock.monotonic());
        let mut all = lock(&self.open);
        if let Some(known) = all.get(&key)
            && known.stage != Stage::Abandoned
        {
            error!(run.id = %key.execution_id(), "an attempt was to start that is open already");
            return self.slots.give(1);
        }
        if self.lease.remaining() == Some(Duration::ZERO) {
            open.stage = Stage::Abandoned;
            all.insert(key, open);
            self.doubt.store(true, Ordering::Release);
            return self.slots.give(1);
        }
        if lock(&self.early_cancels).remove(&key) {
            open.cancel.cancel(CancelReason::Requested);
        }
        let invocation = Invocation {
            key,
            fence,
            tenant: attempt.tenant,
            started_at: attempt.started_at,
            definition: Arc::clone(&attempt.definition),
            checkpoint: attempt.checkpoint,
            cancel,
            lease: self.lease.clone(),
            wire,
        };
        let worker = Arc::clone(self);
        // Spawned under the lock: its end cannot be looked for before it is there.
        let task = tokio::spawn(async move {
            let report = AssertUnwindSafe(worker.run_body(invocation)).catch_unwind().await;
            let report = report.unwrap_or_else(|_| Report::failed("its executor panicked"));
            worker.body_ended(key, fence, report);
        });
        open.task = Some(task.abort_handle());
        all.insert(key, open);
    }

    async fn run_body(&self, invocation: Invocation) -> Report {
        let definition = Arc::clone(&invocation.definition);
        let Some(executor) = self.registry.get(&definition.executor.kind) else {
            let kind = &definition.executor.kind;
            return Report::failed(format!("this node has no executor `{kind}`"));
        };
        let key = invocation.key;
        let body = executor.run(invocation);
        let Some(allowed) = definition.max_allowed_duration else {
            return body.await;
        };
        tokio::pin!(body);
        tokio::select! {
            biased;
            report = &mut body => report,
            () = tokio::time::sleep(allowed.into()) => {
                self.cancel(key, CancelReason::TooLong);
                body.await
            }
        }
    }

    /// Passes on how a body ended, and frees its place.
    fn body_ended(&self, key: RunKey, fence: Fence, report: Report) {
        let mut all = lock(&self.open);
        self.slots.give(1);
        let Some(open) = all.get_mut(&key).filter(|open| open.fence == fence) else { return };
        let was_ended = report.outcome == Outcome::Cancelled;
        match open.cancel.reason() {
            // Nobody asked for it: the body itself saw its lease end. What ended well or badly in
            // spite of that is reported; the fence tells if it still counts.
            None | Some(CancelReason::LeaseLost) if was_ended => {
                open.stage = Stage::Abandoned;
                self.doubt.store(true, Ordering::Release);
            }
            Some(CancelReason::Settled) => {
                all.remove(&key);
            }
            Some(CancelReason::ShuttingDown) if was_ended => {
                let interrupted = Interrupted::of(key, open);
                all.remove(&key);
                lock(&self.interrupted).push(interrupted);
            }
            Some(_) | None => {
                open.stage = Stage::Ended;
                let took = self.clock.monotonic().saturating_sub(open.since);
                let finish = finish_of(key, open, report, took.into(), self.chance.unit());
                // The finisher is gone only when the whole incarnation is.
                let _ = self.ended.send(finish);
            }
        }
    }

    /// An attempt that this node has cannot start, ever: it has failed. It needs no place.
    pub fn refuse(&self, attempt: &evenkeel_store::Owned, why: &str) {
        error!(run.id = %attempt.key.execution_id(), "a run cannot start: {why}");
        let _ = self.ended.send(refused(attempt, why));
    }

    /// The store knows how these attempts ended, or that they are somebody else's.
    pub fn stored<'a>(&self, ends: impl IntoIterator<Item = &'a Finish>) {
        let mut open = lock(&self.open);
        for end in ends {
            if open.get(&end.key).is_some_and(|known| known.fence == end.fence) {
                open.remove(&end.key);
            }
        }
    }

    /// Attempts without a body went back into the queue, or never were this node's any more.
    pub fn forget_abandoned(&self, keep: impl Fn(RunKey) -> bool) {
        lock(&self.open).retain(|key, open| open.stage != Stage::Abandoned || keep(*key));
    }

    /// What running bodies have said since the last time, each with its version.
    pub fn notes(&self) -> Vec<(Note, u64)> {
        // What bodies say is copied after the lock is given back: it may be long.
        let running: Vec<_> = lock(&self.open)
            .iter()
            .filter(|(_, open)| open.stage == Stage::Running)
            .map(|(key, open)| (*key, open.fence, open.wire.clone()))
            .collect();
        running.into_iter().filter_map(|(key, fence, wire)| note_of(key, fence, &wire)).collect()
    }

    /// The last checkpoint of an attempt whose body was ended with the lease, if the store may not
    /// have it.
    pub fn abandoned_checkpoint(&self, key: RunKey) -> Option<Note> {
        let all = lock(&self.open);
        let open = all.get(&key).filter(|open| open.stage == Stage::Abandoned)?;
        unsaved_note(key, open.fence, &open.wire)
    }

    /// The store has what a body said up to this version.
    pub fn noted(&self, key: RunKey, fence: Fence, version: u64) {
        if let Some(open) = lock(&self.open).get(&key).filter(|open| open.fence == fence) {
            open.wire.stored(version);
        }
    }

    /// Passes a word from afar on to a body, if it still runs under that fence.
    pub fn deliver(&self, letter: Letter) {
        let all = lock(&self.open);
        let Some(open) = all.get(&letter.key).filter(|open| open.fence == letter.fence) else {
            return;
        };
        match letter.word {
            Word::Heartbeat => open.wire.sign_of_life(),
            Word::Settled => open.cancel.cancel(CancelReason::Settled),
        }
    }

    /// Asks a body to end; if it has not started yet, as soon as it does.
    pub fn cancel(&self, key: RunKey, reason: CancelReason) {
        match lock(&self.open).get(&key) {
            Some(open) => open.cancel.cancel(reason),
            None => {
                let mut early = lock(&self.early_cancels);
                if early.len() >= EARLY_CANCELS_MAX {
                    warn!("forgetting the oldest of too many early cancellations");
                    early.pop_first();
                }
                early.insert(key);
            }
        }
    }

    /// Asks all bodies to end.
    pub fn cancel_all(&self, reason: CancelReason) {
        for open in lock(&self.open).values().filter(|open| open.stage == Stage::Running) {
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

    /// Does this node run the attempt, or is about to store its end?
    pub fn has(&self, key: RunKey) -> bool {
        lock(&self.open).get(&key).is_some_and(|open| open.stage != Stage::Abandoned)
    }

    /// Was its body ended because the lease ran out?
    pub fn has_abandoned(&self, key: RunKey) -> bool {
        lock(&self.open).get(&key).is_some_and(|open| open.stage == Stage::Abandoned)
    }

    /// Attempts with a body, or with an end that is not stored.
    pub fn open_count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Those of them that this node still has something to do for.
    pub fn busy_count(&self) -> usize {
        lock(&self.open).values().filter(|open| open.stage != Stage::Abandoned).count()
    }

    /// The oldest scheduled time of what is open, long runs aside.
    pub fn oldest_open(&self, long_after: Duration) -> Option<Timestamp> {
        let now = self.clock.monotonic();
        let short = |open: &Open| now.saturating_sub(open.since) < long_after;
        let open = lock(&self.open);
        open.iter().filter(|(_, open)| short(open)).map(|(key, _)| key.scheduled_at).min()
    }

    /// What has been open for longer than `long_after`.
    pub fn long_runs(&self, long_after: Duration) -> Vec<LongRun> {
        let now = self.clock.monotonic();
        let mut runs: Vec<LongRun> = lock(&self.open)
            .iter()
            .filter(|(_, open)| now.saturating_sub(open.since) >= long_after)
            .map(|(key, open)| open.long_run(*key))
            .collect();
        runs.sort_by_key(|run| run.key);
        runs
    }

    /// What could not end before the node drained.
    pub fn take_interrupted(&self) -> Vec<Interrupted> {
        std::mem::take(&mut lock(&self.interrupted))
    }

    /// May a job with this definition start here without waiting in the queue?
    pub fn takes_directly(&self, definition: &Definition, pools: &[String]) -> bool {
        definition.concurrency_key.is_none()
            && definition.dont_run_on_nodes.is_empty()
            && pools.contains(&definition.pool)
    }

    /// Do attempts wait in the store that this node could take, as far as is known? Then what is
    /// due queues up behind them.
    pub fn has_backlog(&self) -> bool {
        self.backlog.load(Ordering::Acquire)
    }

    /// Attempts were put into the queue that this node could take.
    pub fn note_queued(&self) {
        self.queued.fetch_add(1, Ordering::AcqRel);
        self.backlog.store(true, Ordering::Release);
        self.arrivals.notify_one();
    }

    /// Waits until this node has put attempts into the queue that it could take itself: no wake-up by
    /// way of the store is needed for that, which may be lost.
    pub async fn arrived(&self) {
        self.arrivals.notified().await;
    }

    /// Remembers what was queued before a claim, for [`Worker::note_claimed`].
    pub fn queued_before(&self) -> u64 {
        self.queued.load(Ordering::Acquire)
    }

    /// A claim found more than it could take, or not. What was queued meanwhile may not have been
    /// seen by it.
    pub fn note_claimed(&self, more: bool, queued_before: u64) {
        let backlog = more || self.queued.load(Ordering::Acquire) != queued_before;
        self.backlog.store(backlog, Ordering::Release);
    }
}
