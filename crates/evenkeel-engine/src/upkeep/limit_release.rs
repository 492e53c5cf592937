//! Requeues runs that wait for a permit under a concurrency limit.
//!
//! When a run under a concurrency limit ends, its node at once requeues the next run that waits for
//! this limit ([`LimitRelease`]). In addition, the housekeeping node checks all limit queues every
//! second ([`LimitQueueSweeper`]), so that a lost node, signal or answer blocks no run.
//! `LimitRelease` and `LimitQueueSweeper` do not wait for each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use evenkeel_core::AttemptKey;
use evenkeel_core::limit::LimitKey;
use evenkeel_store::{LimitTerms, Permit, ReleaseStep, Released, Signal, StoreError};
use tokio::sync::Notify;
use tracing::debug;

use crate::cluster::node_context::NodeContext;
use crate::sync::lock;

/// Number of limit queues that the [`LimitQueueSweeper`] checks per step.
const QUEUES: u32 = 500;
/// Maximum number of steps per pass of the [`LimitQueueSweeper`]. The next pass resumes at the
/// limit queue where the last pass stopped.
const STEPS: usize = 40;
/// Every 30th sweep of all limit queues also checks runs that wait for a concurrency key against
/// the limits of their tenant and lane. A run that is blocked by a tenant or lane limit moves to
/// the queue of that limit. Usually the end of an earlier run has already moved the blocked run to
/// the queue of the tenant or lane limit.
const TO_WIDER: u64 = 30;
/// Number of permits that one pass checks in order to delete permits of ended runs.
const PERMITS: u32 = 1_000;

/// Permits that attempts of this node hold. While no concurrency limits are used, the end of an
/// attempt costs one atomic load.
#[derive(Debug, Default)]
pub struct HeldPermits {
    is_used: AtomicBool,
    known: Mutex<Known>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Known {
    held: BTreeMap<AttemptKey, Vec<LimitKey>>,
    ended: Vec<Permit>,
}

impl HeldPermits {
    pub fn take(&self, run: AttemptKey, limits: Vec<LimitKey>) {
        if !limits.is_empty() {
            self.is_used.store(true, Ordering::Release);
            lock(&self.known).held.insert(run, limits);
        }
    }

    /// Records that these attempts do not run on this node any more, which frees their permits.
    pub fn release(&self, runs: impl IntoIterator<Item = AttemptKey>) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let mut known = lock(&self.known);
        let before = known.ended.len();
        for run in runs {
            let limits = known.held.remove(&run).unwrap_or_default();
            known.ended.extend(limits.into_iter().map(|limit| Permit { limit, run }));
        }
        if known.ended.len() > before {
            self.released.notify_one();
        }
    }

    fn take_ended(&self) -> Vec<Permit> {
        std::mem::take(&mut lock(&self.known).ended)
    }
}

fn terms(ctx: &NodeContext) -> LimitTerms {
    LimitTerms { aging: ctx.settings.aging, limits: ctx.settings.limits.clone() }
}

/// Sends a signal to workers if runs were requeued.
fn announce_requeued(ctx: &NodeContext, moved: u64) {
    if moved == 0 {
        return;
    }
    if ctx.settings.roles.worker {
        ctx.worker.note_queued();
    }
    ctx.announce(Signal::Ready);
}

fn log_failure(passed: Result<u64, StoreError>) {
    if let Err(error) = passed {
        // A store outage is logged by other loops. The next pass finds the waiting runs that this
        // pass missed.
        debug!(
            error = &error as &dyn std::error::Error,
            "releasing limited runs failed; will retry"
        );
    }
}

pub struct LimitRelease {
    pub ctx: Arc<NodeContext>,
}

impl LimitRelease {
    /// Requeues runs that wait for permits which this node has released since the last call.
    /// Returns how many.
    pub async fn run_once(&self) -> Result<u64, StoreError> {
        let ctx = &self.ctx;
        let ended = ctx.worker.permits.take_ended();
        let mut moved = 0;
        for ended in ended.chunks(ctx.store.batch_sizing().batch) {
            moved += ctx.store.release_limited(ended, &terms(ctx), NodeContext::NOW).await?;
        }
        announce_requeued(ctx, moved);
        Ok(moved)
    }

    pub async fn run(self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        while !*stopping.borrow_and_update() {
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                () = ctx.worker.permits.released.notified() => log_failure(self.run_once().await),
            }
        }
    }
}

/// Checks all limit queues, on the housekeeping node.
pub struct LimitQueueSweeper {
    ctx: Arc<NodeContext>,
    position: SweepPosition,
    sweeps: u64,
    /// The permit at which the search for permits of ended runs resumes.
    at: Option<Permit>,
}

/// Position in a sweep of all limit queues.
#[derive(Debug, Default)]
struct SweepPosition {
    /// The limit whose queue was checked last, or `None` at the start of a sweep.
    after: Option<LimitKey>,
    /// True if a limit queue of this sweep needs another check.
    again: bool,
}

impl SweepPosition {
    /// Records the result of one step of a sweep. Returns whether the sweep over all limit queues
    /// is complete.
    fn advance(&mut self, step: Released) -> bool {
        self.again |= step.again;
        self.after = step.next;
        self.after.is_none() && !std::mem::take(&mut self.again)
    }
}

impl LimitQueueSweeper {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, position: SweepPosition::default(), sweeps: 0, at: None }
    }

    /// Requeues waiting runs whose limit has free permits, and deletes permits of runs that have
    /// ended. A pass has a limited number of steps, and the next pass resumes at the limit queue
    /// where the pass stopped. Returns how many runs were requeued.
    pub async fn run_once(&mut self) -> Result<u64, StoreError> {
        let (ctx, terms) = (Arc::clone(&self.ctx), terms(&self.ctx));
        let (mut moved, mut begins) = (0, false);
        for _ in 0..STEPS {
            let (after, terms) = (self.position.after, terms.clone());
            if after.is_none() && !std::mem::replace(&mut begins, true) {
                self.sweeps += 1;
            }
            // `to_wider` stays the same for a whole sweep, so that every 30th sweep sets it for all
            // limit queues.
            let to_wider = self.sweeps % TO_WIDER == 1;
            let rooms = ReleaseStep { after, limit: QUEUES, terms, to_wider };
            let step = ctx.store.release_all_limited(rooms, NodeContext::NOW).await?;
            announce_requeued(&ctx, step.moved);
            moved += step.moved;
            if self.position.advance(step) {
                break;
            }
        }
        self.at = ctx.store.prune_permits(self.at, PERMITS).await?;
        Ok(moved)
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        while ctx.pause(ctx.settings.poll).await {
            if ctx.is_housekeeper() {
                log_failure(self.run_once().await);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{JobNo, TenantNo, Timestamp};

    use super::*;

    #[test]
    fn permit_is_released_once() {
        let run = |n| AttemptKey::regular(JobNo(n), Timestamp::from_micros(1));
        let limit = LimitKey::of_tenant(TenantNo(1));
        let permits = HeldPermits::default();
        permits.release([run(1)]);
        permits.take(run(1), vec![limit]);
        permits.take(run(2), vec![]);
        permits.release([run(1), run(2)]);
        permits.release([run(1)]);
        assert_eq!(permits.take_ended(), [Permit { limit, run: run(1) }]);
        assert_eq!(permits.take_ended(), []);
    }

    #[test]
    fn sweep_resumes_and_repeats_while_a_queue_needs_another_check() {
        let (first, second) = (LimitKey::of_tenant(TenantNo(1)), LimitKey::of_tenant(TenantNo(2)));
        let step = |next, again| Released { moved: 0, next, again };
        let mut position = SweepPosition::default();
        assert!(!position.advance(step(Some(first), true)));
        assert_eq!(position.after, Some(first));
        assert!(!position.advance(step(Some(second), false)));
        // One of the limit queues needs another check, so the sweep is repeated.
        assert!(!position.advance(step(None, false)));
        assert_eq!(position.after, None);
        assert!(position.advance(step(None, false)));
    }
}
