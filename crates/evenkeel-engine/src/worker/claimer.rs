//! Takes attempts that wait in the store, as many as there is room for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::Timestamp;
use evenkeel_store::{Claim, ClaimedAttempt, Owned, Signal, StoreError};

use crate::cluster::node_context::{Backoff, NodeContext, signalled};
use crate::cluster::store_health::log_trouble;
use crate::insight::metrics::could_start;
use crate::worker::open_attempt::{OpenAttempt, deadline_by_itself};

/// Claims for this node's worker.
pub struct Claimer {
    life: Arc<NodeContext>,
    /// Halved whenever the store does not answer: a claim brings checkpoints along, and too many
    /// of them would never come through.
    room_max: AtomicUsize,
}

impl Claimer {
    /// A dispatcher of this incarnation.
    pub fn new(life: Arc<NodeContext>) -> Self {
        let room_max = AtomicUsize::new(life.store.appetite().batch);
        Self { life, room_max }
    }

    /// Claims one batch and starts it. Says whether more may wait.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let life = &self.life;
        if !life.may_start() {
            return Ok(false);
        }
        let room_max = self.room_max.load(Ordering::Relaxed);
        let room = life.worker.take_places_to_claim(room_max);
        if room == 0 {
            return Ok(false);
        }
        let claim = Claim {
            node: life.node,
            node_name: life.settings.node_name.clone(),
            pools: life.settings.pools.clone(),
            room,
            guaranteed: life.settings.shares.of(room),
            aging: life.settings.aging,
            limits: life.settings.limits.clone(),
        };
        // What will be claimed is not known before: no ping may raise the bound meanwhile.
        let under_way = life.bound.set_out(Timestamp::MIN).await;
        let queued_before = life.worker.queued_before();
        let claimed = match life.store.claim(&claim, NodeContext::NOW).await {
            Ok(claimed) => claimed,
            Err(error) => {
                life.worker.claim_failed();
                life.worker.slots.give(room);
                self.room_max.store((room_max / 2).max(1), Ordering::Relaxed);
                // It may have been committed: the reconciler finds what nobody started.
                if error.unwritable().is_none() {
                    life.raise_doubt();
                }
                return Err(error);
            }
        };
        let batch = life.store.appetite().batch;
        self.room_max.store((room_max * 2).min(batch), Ordering::Relaxed);
        life.db_clock.observe(claimed.now);
        let got = claimed.attempts.len();
        let more = got == room || claimed.again;
        life.worker.note_claimed(got, more, queued_before);
        for attempt in claimed.attempts {
            self.start(attempt, claimed.now);
        }
        drop(under_way);
        life.worker.slots.give(room - got);
        if more && got == 0 {
            // Somebody else is just giving out the places, or many stand in the way: not at once.
            tokio::time::sleep(life.settings.linger).await;
        }
        Ok(more)
    }

    fn start(&self, claimed: ClaimedAttempt, now: Timestamp) {
        let life = &self.life;
        match life.definitions.read(claimed.key.job_no, &claimed.definition) {
            Ok(definition) => {
                let (scheduled, average) = (claimed.key.scheduled_at, definition.average(None));
                life.meters.started(
                    could_start(&definition, scheduled, average),
                    deadline_by_itself(&definition, scheduled),
                    now,
                );
                life.meters.waited(definition.lane, claimed.since, now);
                life.worker.places.take(claimed.key, claimed.places);
                life.start(OpenAttempt {
                    key: claimed.key,
                    fence: claimed.fence,
                    tenant: claimed.tenant,
                    definition,
                    started_at: now,
                    waited: now.since(claimed.since),
                    checkpoint: claimed.checkpoint,
                    priority: claimed.priority,
                });
            }
            Err(fault) => {
                life.worker.slots.give(1);
                let owned = Owned {
                    key: claimed.key,
                    fence: claimed.fence,
                    tenant: claimed.tenant,
                    started_at: now,
                    crashes: 0,
                    definition: claimed.definition,
                    priority: claimed.priority,
                };
                life.worker.refuse(&owned, &fault.to_string());
            }
        }
    }

    /// Runs until the node stops.
    pub async fn run(self) {
        let life = &self.life;
        let mut stopping = life.stopping.subscribe();
        let mut signals = life.store.signals().subscribe();
        let mut backoff = Backoff::default();
        while !*stopping.borrow_and_update() {
            let wait = match self.run_once().await {
                Ok(true) => {
                    backoff.reset();
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(false) => {
                    backoff.reset();
                    life.settings.poll
                }
                Err(error) => {
                    log_trouble(&error, "claiming failed; will retry");
                    // Whatever signals say, the store comes first.
                    life.pause(backoff.next()).await;
                    continue;
                }
            };
            let full = life.worker.slots.free() == 0;
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                () = life.worker.slots.freed(wait), if full => {}
                () = signalled(&mut signals, Signal::Ready) => if full {
                    // The next free place is for it, unless what is due here goes before it.
                    life.worker.note_queued();
                },
                () = life.worker.arrived(), if !full => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
