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
use evenkeel_store::{Owned, Requeue, Signal, StoreError};
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
const DOUBT_LASTS: Duration = Duration::from_secs(20);
const LIMIT: u32 = 50_000;

/// Finds attempts that are this node's and that it does not run.
pub struct Reconciler {
    life: Arc<NodeContext>,
    /// What was unknown at the last pass, and whose answers were under way then.
    missing: BTreeMap<(AttemptKey, Fence), u64>,
    doubt_until: Duration,
}

impl Reconciler {
    /// A reconciler of this incarnation.
    pub fn new(life: Arc<NodeContext>) -> Self {
        Self { life, missing: BTreeMap::new(), doubt_until: Duration::ZERO }
    }

    /// Compares once, and gives back what surely nobody starts. Says how many.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let life = Arc::clone(&self.life);
        // Taken before looking: whoever sets out later cannot have been seen.
        let ticket = life.bound.next_ticket();
        // Also before: what runs was committed, so it is found, unless it is another's by now.
        let running = life.worker.running();
        // Those that are lost while this pass goes on are for the next one.
        let mut lost = life.worker.all_lost();
        let owned = life.store.owned(life.node, LIMIT).await?;
        self.let_go_of_lost(running, &owned).await?;
        let unknown: Vec<Owned> =
            owned.into_iter().filter(|owned| !life.worker.has(owned.key)).collect();
        let own = FormerOwner::own(&life);
        let (mut given_back, mut missing) = (Vec::new(), BTreeMap::new());
        for attempt in unknown {
            let right = (attempt.key, attempt.fence);
            let known = life.worker.lost(attempt.key, attempt.fence);
            let since = self.missing.get(&right).copied();
            // What this node lost had a body, or surely gets none. Of what it does not know the
            // answer was lost; once all answers have arrived, no body of it can start any more.
            let surely =
                known.is_some() || since.is_some_and(|since| life.bound.all_arrived_before(since));
            if !surely {
                missing.insert(right, since.unwrap_or(ticket));
                continue;
            }
            given_back.push(own.lost(&life, &attempt, known));
        }
        self.missing = missing;
        let count = given_back.len();
        if count > 0 {
            let last = |requeue: &Requeue| life.worker.lost_checkpoint(requeue.key);
            store_last(&life, given_back.iter().filter_map(last).collect(), CHECKPOINTS).await;
            let taken = own.give_back(&life, given_back).await?;
            info!(
                runs.queued = taken.queued.len(),
                runs.failed = taken.failed.len(),
                "gave back runs of this node that it does not run"
            );
            let _ = life.store.announce(Signal::Ready).await;
        }
        // All that the store has of this node is known or given back: the rest is another's.
        lost.retain(|right| !self.missing.contains_key(right));
        life.worker.forget_lost(&lost);
        Ok(count)
    }

    /// Bodies that the store did not find under their right are looked up by themselves, and let go
    /// if it is so: somebody said how their runs go on, and the letter about it was lost.
    async fn let_go_of_lost(
        &self,
        mut running: Vec<(AttemptKey, Fence)>,
        owned: &[Owned],
    ) -> Result<(), StoreError> {
        let rights = |owned: &[Owned]| -> FxHashSet<(AttemptKey, Fence)> {
            owned.iter().map(|attempt| (attempt.key, attempt.fence)).collect()
        };
        let found = rights(owned);
        running.retain(|body| !found.contains(body));
        if running.is_empty() {
            return Ok(());
        }
        let keys: Vec<AttemptKey> = running.iter().map(|(key, _)| *key).collect();
        let found = rights(&self.life.store.find_owned(self.life.node, &keys).await?);
        running.retain(|body| !found.contains(body));
        let count = self.life.worker.let_go_of(running.into_iter());
        if count > 0 {
            info!(runs.count = count, "let {count} bodies go whose runs are no longer this node's");
        }
        Ok(())
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let life = Arc::clone(&self.life);
        let mut last_pass = life.clock.monotonic();
        // In doubt, a pass as often as a ping; what nobody abandoned must be missing in two.
        let soon = Duration::from(life.settings.leases.ping);
        let doubt_lasts = DOUBT_LASTS.max(2 * soon);
        while life.pause(soon).await {
            let now = life.clock.monotonic();
            if life.worker.doubt.swap(false, Ordering::AcqRel) {
                life.hold_bound.store(true, Ordering::Release);
                self.doubt_until = now + doubt_lasts;
            }
            let in_doubt = now <= self.doubt_until || !self.missing.is_empty();
            if !in_doubt && now.saturating_sub(last_pass) < SELDOM {
                continue;
            }
            last_pass = now;
            match self.run_once().await {
                Ok(_) => {
                    let over = self.missing.is_empty() && now > self.doubt_until;
                    if over && !life.worker.doubt.load(Ordering::Acquire) {
                        life.hold_bound.store(false, Ordering::Release);
                    }
                }
                Err(error) => {
                    life.raise_doubt();
                    log_trouble(&error, "comparing with the store failed; will retry");
                }
            }
        }
    }
}
