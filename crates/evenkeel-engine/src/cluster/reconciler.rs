//! Compares the attempts that the store assigns to this node with those it runs. Gives back
//! attempts without a body here, and cancels bodies whose attempt is no longer this node's.
//!
//! Such differences come from commits whose answer was lost, and from bodies that were cancelled
//! while the store was unreachable. No other node takes such an attempt over, because its owner is
//! alive. While one may exist, pings do not raise the low watermark, or a search from there would
//! miss it.

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

/// Time limit for storing last checkpoints.
const CHECKPOINTS: Duration = Duration::from_secs(2);
/// Interval of regular passes.
const SELDOM: Duration = Duration::from_secs(60);
/// A request is followed by passes for this long: a statement may still commit this late after its
/// answer was lost.
const RECONCILE_FOR: Duration = Duration::from_secs(20);
const LIMIT: u32 = 50_000;

pub struct Reconciler {
    ctx: Arc<NodeContext>,
    /// Attempts without a body at the last pass, with the number of the first batch that began
    /// after it was first missed.
    missing: BTreeMap<(AttemptKey, Fence), u64>,
    reconcile_until: Duration,
}

impl Reconciler {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, missing: BTreeMap::new(), reconcile_until: Duration::ZERO }
    }

    /// Compares once and gives back attempts that certainly have no body. Returns how many.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        // Read before the query, because batches that begin later are not in its answer.
        let batch_no = ctx.low_watermark.next_batch_no();
        // Read before the query: these attempts are committed, so the query finds them unless they
        // were taken away.
        let running = ctx.worker.running();
        // Attempts that are lost during this pass are handled by the next one.
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
            // A lost attempt has no body any more. For an unknown attempt the answer was lost; once
            // all batches sent before are answered, no body of it can start.
            let is_certain = known.is_some()
                || since.is_some_and(|since| ctx.low_watermark.all_finished_before(since));
            if !is_certain {
                missing.insert(right, since.unwrap_or(batch_no));
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
                "returned attempts to the queue that the store assigned to this node but that were not running"
            );
            let _ = ctx.store.announce(Signal::Ready).await;
        }
        // All attempts that the store assigns to this node are known or given back; other lost ones
        // belong to another node.
        lost.retain(|right| !self.missing.contains_key(right));
        ctx.worker.forget_lost(&lost);
        Ok(count)
    }

    /// Looks up bodies whose attempt was not in the answer, and cancels them if the store confirms
    /// that the attempt is no longer this node's. Their outcome was overridden and the message
    /// about it was lost.
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
            info!(
                runs.count = count,
                "cancelled running attempts that no longer belong to this node"
            );
        }
        Ok(())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut last_pass = ctx.clock.monotonic();
        // After a request, one pass per ping. An unknown attempt must be missing in two passes.
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
                    log_trouble(&error, "reconciling failed; will retry");
                }
            }
        }
    }
}
