//! Compares what the store says this node has with what it knows, and gives back the difference.
//!
//! The difference comes from commits whose answer was lost. Nothing else would ever touch such an
//! attempt: its node is alive, so nobody takes it over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::RunKey;
use evenkeel_store::{Requeue, Signal, StoreError, Ticket};
use tracing::{info, warn};

use crate::incarnation::Incarnation;

/// After doubt, a pass this often; an attempt must be missing in two.
const SOON: Duration = Duration::from_secs(3);
/// Without doubt, this often.
const SELDOM: Duration = Duration::from_secs(60);
/// A statement that the store is still busy with may commit this long after its answer was lost.
const DOUBT_LASTS: Duration = Duration::from_secs(20);
const LIMIT: u32 = 50_000;

/// Finds attempts that are this node's and that it does not know.
pub struct Reconciler {
    life: Arc<Incarnation>,
    missing: BTreeSet<RunKey>,
    doubt_until: Duration,
}

impl Reconciler {
    /// A reconciler of this incarnation.
    pub fn new(life: Arc<Incarnation>) -> Self {
        Self { life, missing: BTreeSet::new(), doubt_until: Duration::ZERO }
    }

    /// Compares once. What was missing the last time too goes back into the queue.
    pub async fn run_once(&mut self) -> Result<usize, StoreError> {
        let life = &self.life;
        let owned = life.store.owned(life.node, LIMIT).await?;
        let unknown: Vec<_> =
            owned.into_iter().filter(|owned| !life.worker.has(owned.key)).collect();
        let mut given_back = Vec::new();
        for attempt in unknown.iter().filter(|attempt| self.missing.contains(&attempt.key)) {
            let definition = life.definitions.read(attempt.key.job_no, &attempt.definition)?;
            given_back.push(Requeue {
                key: attempt.key,
                fence: attempt.fence,
                tenant: attempt.tenant,
                crashed: false,
                ticket: Ticket::new(&definition, attempt.key.scheduled_at),
            });
        }
        self.missing = unknown.iter().map(|attempt| attempt.key).collect();
        let count = given_back.len();
        if count > 0 {
            let life = Arc::clone(&self.life);
            life.store.requeue(life.node, given_back, Incarnation::NOW).await?;
            info!(runs.count = count, "gave back {count} runs that a lost answer had left behind");
            let _ = life.store.announce(Signal::Ready).await;
        }
        Ok(count)
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let life = Arc::clone(&self.life);
        let mut last_pass = life.clock.monotonic();
        while life.pause(SOON).await {
            let now = life.clock.monotonic();
            if life.doubt.swap(false, Ordering::AcqRel) {
                self.doubt_until = now + DOUBT_LASTS;
            }
            let seldom = now.saturating_sub(last_pass) >= SELDOM;
            if !seldom && now > self.doubt_until && self.missing.is_empty() {
                continue;
            }
            last_pass = now;
            if let Err(error) = self.run_once().await {
                life.raise_doubt();
                warn!(error = &error as &dyn std::error::Error, "comparing waits for the store");
            }
        }
    }
}
