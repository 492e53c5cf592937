//! Compares what the store says this node has with what it knows, and gives back the difference.
//! Bodies that run here under a right that the store no longer knows of are let go.
//!
//! The difference comes from commits whose answer was lost, and from bodies that were ended because
//! the store could not be reached. Nothing else would ever touch such an attempt: its node is alive,
//! so nobody takes it over. As long as there may be one, the node announces no higher bound of its
//! open attempts, or the search from there would miss it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::AttemptKey;
use evenkeel_core::lease::Fence;
use evenkeel_store::{OwnedAttempt, Requeue, Signal, StoreError};
use rustc_hash::FxHashSet;
use tracing::info;

use crate::cluster::lost_attempts::FormerOwner;
use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;
use crate::worker::recorder::store_last;

/// Last checkpoints have this long to be stored.
const CHECKPOINTS: Duration = Duration::from_secs(2);
/// Without doubt, this often.
const SELDOM: Duration = Duration::from_secs(60);
/// A statement that the store is still busy with may commit this long after its answer was lost.
const RECONCILE_FOR: Duration = Duration::from_secs(20);
const LIMIT: u32 = 50_000;

/// Finds attempts that are this node's and that it does not run.
pub struct Reconciler {
    ctx: Arc<NodeContext>,
    /// What was unknown at the last pass, and whose answers were under way then.
    missing: BTreeMap<(AttemptKey, Fence), u64>,
    reconcile_until: Duration,
}

impl Reconciler {
    /// A reconciler of this incarnation.
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, missing: BTreeMap::new(), reconcile_until: Duration::ZERO }
    }

    /// Compares once, and gives back what surely nobody starts. Says how many.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        // Taken before looking: whoever sets out later cannot have been seen.
        let ticket = ctx.low_watermark.next_batch_no();
        // Also before: what runs was committed, so it is found, unless it is another's by now.
        let running = ctx.worker.running();
        // Those that are lost while this pass goes on are for the next one.
        let mut lost = ctx.worker.all_lost();
        let owned = ctx.store.list_owned(ctx.node, LIMIT).await?;
        self.cancel_disowned_bodies(running, &owned).await?;
        let unknown: Vec<OwnedAttempt> =
            owned.into_iter().filter(|owned| !ctx.worker.has(owned.key)).collect();
        let own = FormerOwner::own(&ctx);
        let (mut given_back, mut missing) = (Vec::new(), BTreeMap::new());
        for attempt in unknown {
            let right = (attempt.key, attempt.fence);
            let known = ctx.worker.lost(attempt.key, attempt.fence);
            let since = self.missing.get(&right).copied();
            // What this node lost had a body, or surely gets none. Of what it does not know the
            // answer was lost; once all answers have arrived, no body of it can start any more.
            let surely = known.is_some()
                || since.is_some_and(|since| ctx.low_watermark.all_finished_before(since));
            if !surely {
                missing.insert(right, since.unwrap_or(ticket));
                continue;
            }
            given_back.push(own.lost(&ctx, &attempt, known));
        }
        self.missing = missing;
        let count = given_back.len();
        if count > 0 {
            let last = |requeue: &Requeue| ctx.worker.lost_checkpoint(requeue.key);
            store_last(&ctx, given_back.iter().filter_map(last).collect(), CHECKPOINTS).await;
            let taken = own.give_back(&ctx, given_back).await?;
            info!(
                runs.queued = taken.queued.len(),
                runs.failed = taken.failed.len(),
                "gave back runs of this node that it does not run"
            );
            let _ = ctx.store.announce(Signal::Ready).await;
        }
        // All that the store has of this node is known or given back: the rest is another's.
        lost.retain(|right| !self.missing.contains_key(right));
        ctx.worker.forget_lost(&lost);
        Ok(count)
    }

    /// Bodies that the store did not find under their right are looked up by themselves, and let go
    /// if it is so: somebody said how their runs go on, and the letter about it was lost.
    async fn cancel_disowned_bodies(
        &self,
        mut running: Vec<(AttemptKey, Fence)>,
        owned: &[OwnedAttempt],
    ) -> Result<(), StoreError> {
        let rights = |owned: &[OwnedAttempt]| -> FxHashSet<(AttemptKey, Fence)> {
            owned.iter().map(|attempt| (attempt.key, attempt.fence)).collect()
        };
        let found = rights(owned);
        running.retain(|body| !found.contains(body));
        if running.is_empty() {
            return Ok(());
        }
        let keys: Vec<AttemptKey> = running.iter().map(|(key, _)| *key).collect();
        let found = rights(&self.ctx.store.find_owned(self.ctx.node, &keys).await?);
        running.retain(|body| !found.contains(body));
        let count = self.ctx.worker.cancel_disowned(running.into_iter());
        if count > 0 {
            info!(runs.count = count, "let {count} bodies go whose runs are no longer this node's");
        }
        Ok(())
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut last_pass = ctx.clock.monotonic();
        // In doubt, a pass as often as a ping; what nobody abandoned must be missing in two.
        let soon = Duration::from(ctx.settings.leases.ping);
        let reconcile_for = RECONCILE_FOR.max(2 * soon);
        while ctx.pause(soon).await {
            let now = ctx.clock.monotonic();
            if ctx.worker.needs_reconcile.swap(false, Ordering::AcqRel) {
                ctx.hold_watermark.store(true, Ordering::Release);
                self.reconcile_until = now + reconcile_for;
            }
            let may_own_unknown_attempts = now <= self.reconcile_until || !self.missing.is_empty();
            if !may_own_unknown_attempts && now.saturating_sub(last_pass) < SELDOM {
                continue;
            }
            last_pass = now;
            match self.run_once().await {
                Ok(_) => {
                    let over = self.missing.is_empty() && now > self.reconcile_until;
                    if over && !ctx.worker.needs_reconcile.load(Ordering::Acquire) {
                        ctx.hold_watermark.store(false, Ordering::Release);
                    }
                }
                Err(error) => {
                    ctx.request_reconcile();
                    log_trouble(&error, "comparing with the store failed; will retry");
                }
            }
        }
    }
}
