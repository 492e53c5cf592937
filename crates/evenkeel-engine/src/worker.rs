//! Runs bodies: starts them, watches over them, and passes on how they ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::job::OnExhausted;
use evenkeel_core::lease::Fence;
use evenkeel_core::retry::Verdict;
use evenkeel_core::run::Outcome;
use evenkeel_core::{Definition, RunKey, Span, TenantNo, Timestamp};
use evenkeel_executors::{
    CancelHandle, CancelReason, Invocation, Lease, Registry, Report, cancellation,
};
use evenkeel_store::{Finish, LongRun, Results, Then};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::slots::Slots;

/// Ended bodies that the store may not know of before no more are started.
const UNSTORED_MAX: usize = 8192;

/// An attempt that this node has claimed and must start. It has a place in [`Slots`].
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Which one.
    pub key: RunKey,
    /// The right to write its results.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// What to do.
    pub definition: Arc<Definition>,
    /// When the claim was committed.
    pub started_at: Timestamp,
    /// What an earlier attempt saved.
    pub checkpoint: Option<Vec<u8>>,
}

/// An attempt this node has, from its start until its end is stored.
#[derive(Debug)]
struct Open {
    fence: Fence,
    tenant: TenantNo,
    definition: Arc<Definition>,
    started_at: Timestamp,
    since: Duration,
    cancel: CancelHandle,
    /// The body has ended; only the store does not know yet.
    ended: bool,
}

/// What this node has to give back because it could not let it end.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// Which attempt.
    pub key: RunKey,
    /// With this fence.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// What it does.
    pub definition: Arc<Definition>,
}

/// All bodies of one incarnation of a node.
pub struct Worker {
    /// The places for bodies.
    pub slots: Arc<Slots>,
    /// Does the store hold attempts that wait, as far as is known? Then what is due queues up
    /// behind them.
    pub backlog: AtomicBool,
    open: Mutex<FxHashMap<RunKey, Open>>,
    interrupted: Mutex<Vec<Interrupted>>,
    registry: Arc<Registry>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    ended: mpsc::UnboundedSender<Finish>,
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
            backlog: AtomicBool::new(false),
            open: Mutex::default(),
            interrupted: Mutex::default(),
            registry,
            lease,
            clock,
            chance,
            ended,
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, FxHashMap<RunKey, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `wanted` places; fewer if the store is far behind in learning how bodies ended.
    pub fn take_places(&self, wanted: usize) -> usize {
        let behind = self.open_count().saturating_sub(self.slots.total());
        self.slots.take(wanted.min(UNSTORED_MAX.saturating_sub(behind)))
    }

    /// Starts the body of an attempt.
    pub fn start(self: &Arc<Self>, attempt: Attempt) {
        let (handle, cancel) = cancellation();
        let open = Open {
            fence: attempt.fence,
            tenant: attempt.tenant,
            definition: Arc::clone(&attempt.definition),
            started_at: attempt.started_at,
            since: self.clock.monotonic(),
            cancel: handle,
            ended: false,
        };
        self.open().insert(attempt.key, open);
        let worker = Arc::clone(self);
        let invocation = Invocation {
            key: attempt.key,
            fence: attempt.fence,
            definition: Arc::clone(&attempt.definition),
            checkpoint: attempt.checkpoint,
            cancel,
            lease: self.lease.clone(),
        };
        tokio::spawn(async move {
            let report = worker.run_body(invocation).await;
            worker.body_ended(attempt.key, report);
        });
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
    fn body_ended(&self, key: RunKey, report: Report) {
        let finish = {
            let mut all = self.open();
            let Some(open) = all.get_mut(&key) else { return self.slots.give(1) };
            let interrupted = report.outcome == Outcome::Cancelled;
            match open.cancel.reason() {
                // The attempt is no longer ours to report on, or goes to somebody else unharmed.
                // What ended by itself meanwhile is reported: the fence tells if it still counts.
                Some(CancelReason::LeaseLost) if interrupted => {
                    all.remove(&key);
                    None
                }
                Some(CancelReason::ShuttingDown) if interrupted => {
                    self.keep_interrupted(key, open);
                    all.remove(&key);
                    None
                }
                Some(_) | None => {
                    open.ended = true;
                    Some(self.finish(key, open, report))
                }
            }
        };
        self.slots.give(1);
        if let Some(finish) = finish {
            // The finisher is gone only when the whole incarnation is.
            let _ = self.ended.send(finish);
        }
    }

    fn keep_interrupted(&self, key: RunKey, open: &Open) {
        let mut interrupted = self.interrupted.lock().unwrap_or_else(PoisonError::into_inner);
        interrupted.push(Interrupted {
            key,
            fence: open.fence,
            tenant: open.tenant,
            definition: Arc::clone(&open.definition),
        });
    }

    fn finish(&self, key: RunKey, open: &Open, report: Report) -> Finish {
        let took = Span::from(self.clock.monotonic().saturating_sub(open.since));
        let finished_at = open.started_at.saturating_add(took);
        let then = if report.outcome.is_failure() {
            match open.definition.retry.after_failure(key.attempt, self.chance.unit()) {
                Verdict::RetryAfter(wait) => Then::Retry { due: finished_at.saturating_add(wait) },
                Verdict::Exhausted => {
                    Then::EndChain { stop_job: open.definition.on_exhausted == OnExhausted::Stop }
                }
            }
        } else {
            Then::EndChain { stop_job: false }
        };
        Finish {
            key,
            fence: open.fence,
            tenant: open.tenant,
            outcome: report.outcome,
            started_at: open.started_at,
            finished_at,
            results: Results {
                error: report.error,
                output: report.output,
                items_crawled: report.items_crawled,
                items_indexed: report.items_indexed,
                cpu_time: report.cpu_time,
                memory_peak_kb: report.memory_peak_kb,
            },
            then,
        }
    }

    /// The store knows how these attempts ended.
    pub fn stored(&self, keys: impl IntoIterator<Item = RunKey>) {
        let mut open = self.open();
        for key in keys {
            open.remove(&key);
        }
    }

    /// Asks a body to end.
    pub fn cancel(&self, key: RunKey, reason: CancelReason) {
        if let Some(open) = self.open().get(&key) {
            open.cancel.cancel(reason);
        }
    }

    /// Asks all bodies to end. Those that have ended already are not touched.
    pub fn cancel_all(&self, reason: CancelReason) {
        for open in self.open().values().filter(|open| !open.ended) {
            open.cancel.cancel(reason);
        }
    }

    /// Does this node have the attempt?
    pub fn has(&self, key: RunKey) -> bool {
        self.open().contains_key(&key)
    }

    /// Attempts this node has, whose end is not stored.
    pub fn open_count(&self) -> usize {
        self.open().len()
    }

    /// The oldest scheduled time of what is open, long runs aside.
    pub fn oldest_open(&self, long_after: Duration) -> Option<Timestamp> {
        let now = self.clock.monotonic();
        let short = |open: &Open| now.saturating_sub(open.since) < long_after;
        let open = self.open();
        open.iter().filter(|(_, open)| short(open)).map(|(key, _)| key.scheduled_at).min()
    }

    /// What has run for longer than `long_after`.
    pub fn long_runs(&self, long_after: Duration) -> Vec<LongRun> {
        let now = self.clock.monotonic();
        let mut runs: Vec<LongRun> = self
            .open()
            .iter()
            .filter(|(_, open)| now.saturating_sub(open.since) >= long_after)
            .map(|(key, open)| LongRun {
                key: *key,
                fence: open.fence,
                started_at: open.started_at,
            })
            .collect();
        runs.sort_by_key(|run| run.key);
        runs
    }

    /// What could not end before the node drained.
    pub fn take_interrupted(&self) -> Vec<Interrupted> {
        std::mem::take(&mut self.interrupted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// May a job with this definition start here without waiting in the queue?
    pub fn takes_directly(&self, definition: &Definition, pools: &[String]) -> bool {
        !self.backlog.load(Ordering::Acquire)
            && definition.concurrency_key.is_none()
            && definition.dont_run_on_nodes.is_empty()
            && pools.contains(&definition.pool)
    }
}
