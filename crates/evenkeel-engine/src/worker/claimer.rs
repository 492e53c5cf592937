//! Claims as many queued attempts as this node has free worker slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::Timestamp;
use evenkeel_store::{Claim, ClaimedAttempt, Finish, Signal, StoreError};

use crate::cluster::node_context::{Backoff, NodeContext, signalled};
use crate::cluster::store_health::log_trouble;
use crate::insight::activity::BatchActivity;
use crate::worker::open_attempt::{AttemptToStart, deadline_without_history};

pub struct Claimer {
    ctx: Arc<NodeContext>,
    /// Maximum number of attempts per claim. The claimer halves this maximum after each failed
    /// claim, because checkpoints can make the answer to a claim so large that the claim always
    /// times out.
    claim_max: AtomicUsize,
}

impl Claimer {
    pub fn new(ctx: Arc<NodeContext>) -> Self {
        let claim_max = AtomicUsize::new(ctx.store.batch_sizing().batch);
        Self { ctx, claim_max }
    }

    /// Claims and starts one batch of queued attempts. Returns whether the queue may hold more
    /// attempts.
    pub async fn run_once(&self) -> Result<bool, StoreError> {
        let ctx = &self.ctx;
        if !ctx.may_start() {
            return Ok(false);
        }
        let claim_max = self.claim_max.load(Ordering::Relaxed);
        let slots = ctx.worker.take_slots_to_claim(claim_max);
        if slots == 0 {
            return Ok(false);
        }
        let claim = Claim {
            node: ctx.node,
            node_name: ctx.settings.node_name.clone(),
            pools: ctx.settings.pools.clone(),
            capacity: slots,
            guaranteed: ctx.settings.shares.of(slots),
            aging: ctx.settings.aging,
            limits: ctx.settings.limits.clone(),
        };
        // The node learns the scheduled times of claimed attempts only from the answer, so no ping
        // may raise the low watermark before the answer arrives.
        let in_flight = ctx.low_watermark.begin_batch(Timestamp::MIN).await;
        let queued_before = ctx.worker.queued_before();
        let claimed = ctx.store.claim(&claim, NodeContext::NOW).await;
        let claimed = claimed.inspect_err(|error| {
            ctx.worker.claim_failed();
            ctx.worker.slots.give(slots);
            self.claim_max.store((claim_max / 2).max(1), Ordering::Relaxed);
            // The claim may have been committed. The reconciler finds claimed attempts that were
            // not started.
            if error.unwritable().is_none() {
                ctx.request_reconcile();
            }
        })?;
        let batch = ctx.store.batch_sizing().batch;
        self.claim_max.store((claim_max * 2).min(batch), Ordering::Relaxed);
        ctx.db_clock.observe(claimed.now);
        let got = claimed.attempts.len();
        let more = got == slots || claimed.again;
        ctx.worker.note_claimed(got, more, queued_before);
        let mut activity = BatchActivity::at(claimed.now);
        for attempt in claimed.attempts {
            self.start(attempt, claimed.now, &mut activity);
        }
        ctx.worker.stats.active(&activity);
        drop(in_flight);
        ctx.worker.slots.give(slots - got);
        if more && got == 0 {
            // Wait a moment, because another node is assigning permits, or because many attempts at
            // the front of the queue cannot be claimed now.
            tokio::time::sleep(ctx.settings.linger).await;
        }
        Ok(more)
    }

    fn start(&self, claimed: ClaimedAttempt, now: Timestamp, activity: &mut BatchActivity) {
        let ctx = &self.ctx;
        match ctx.definitions.read(claimed.key.job_no, &claimed.definition) {
            Ok(definition) => {
                let (scheduled, average) = (claimed.key.scheduled_at, definition.average(None));
                let earliest_start = definition.may_start_from(scheduled, average);
                let deadline = deadline_without_history(&definition, scheduled);
                ctx.run_metrics.started(earliest_start, deadline, now);
                let attempt = claimed.key.attempt;
                activity.started(claimed.tenant, attempt, now.since(earliest_start));
                ctx.run_metrics.waited(definition.lane, claimed.since, now);
                ctx.worker.permits.take(claimed.key, claimed.permits);
                ctx.start(AttemptToStart {
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
                ctx.worker.slots.give(1);
                let attempt = (claimed.key, claimed.fence, claimed.tenant);
                let end = Finish::without_report(attempt, Some(fault.to_string()), now);
                ctx.worker.refuse(Finish { priority: claimed.priority, ..end });
            }
        }
    }

    pub async fn run(self) {
        let ctx = &self.ctx;
        let mut stopping = ctx.stopping.subscribe();
        let mut signals = ctx.store.signals().subscribe();
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
                    ctx.settings.poll
                }
                Err(error) => {
                    log_trouble(&error, "claiming queued attempts failed; will retry");
                    // While the store fails, signals must not shorten the delay before the next
                    // try.
                    ctx.pause(backoff.next()).await;
                    continue;
                }
            };
            let full = ctx.worker.slots.free() == 0;
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                () = ctx.worker.slots.freed(wait), if full => {}
                () = signalled(&mut signals, Signal::Ready) => if full {
                    // The next free worker slot is reserved for an attempt from the queue, unless a
                    // due job of this node ranks higher.
                    ctx.worker.note_queued();
                },
                () = ctx.worker.arrived(), if !full => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
