//! Compares the attempts that the store assigns to this node with the attempts that run here.
//! Requeues or fails assigned attempts that do not run, and cancels running attempts that are not
//! assigned to this node any more.
//!
//! An assigned attempt does not run if the answer to its claim was lost, or if it was cancelled
//! while the store was unreachable. No other node takes over an assigned attempt that does not run,
//! because its owner is alive. Until all assigned attempts are known to run, pings do not raise the
//! low watermark, because the store searches for the attempts of a node from its watermark on.

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
/// After a reconcile was requested, the reconciler runs once per ping interval for at least 20 s. A
/// database statement whose answer was lost may commit up to 20 s later.
const RECONCILE_FOR: Duration = Duration::from_secs(20);
const LIMIT: u32 = 50_000;

pub struct Reconciler {
    ctx: Arc<NodeContext>,
    /// Attempts that the store assigns to this node but that did not run here at the last pass.
    /// Each attempt has the number of the first batch of fires or claims that began after the
    /// attempt was found missing.
    missing: BTreeMap<(AttemptKey, Fence), u64>,
    reconcile_until: Duration,
}

impl Reconciler {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        Self { ctx, missing: BTreeMap::new(), reconcile_until: Duration::ZERO }
    }

    /// Compares assigned and running attempts, and requeues or fails assigned attempts that
    /// certainly do not run here. Returns how many.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let ctx = Arc::clone(&self.ctx);
        // Read the next batch number before the query for owned attempts, because the query may
        // miss attempts that later batches claim.
        let batch_no = ctx.low_watermark.next_batch_no();
        // Read the list of running attempts before the query for owned attempts. The claims of
        // running attempts are committed, so the query finds all of them that this node still owns.
        let running = ctx.worker.running();
        // The next pass of the reconciler handles attempts that this node loses during this pass.
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
            // An attempt that this node has marked as lost does not run any more. An unknown
            // attempt can still start while the answer to its claim is on the way. After the store
            // has answered all batches that began before the attempt was first missing, an unknown
            // attempt cannot start any more.
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
                "the store assigned attempts to this node that did not run here; returned these attempts to the queue"
            );
            let _ = ctx.store.announce(Signal::Ready).await;
        }
        // Lost attempts that the store assigned to this node are requeued or failed now. Lost
        // attempts that the store did not list belong to another node.
        lost.retain(|right| !self.missing.contains_key(right));
        ctx.worker.forget_lost(&lost);
        Ok(count)
    }

    /// Cancels running attempts that this node does not own any more. An outcome override ends the
    /// ownership of an attempt, and the message about the override can be lost.
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
                "cancelled running attempts that the store no longer assigns to this node"
            );
        }
        Ok(())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut last_pass = ctx.clock.monotonic();
        // After a reconcile was requested, one pass runs per ping interval. An unknown attempt is
        // requeued only after two passes have found it missing.
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
                    log_trouble(&error, "checking attempts against the store failed; will retry");
                }
            }
        }
    }
}
