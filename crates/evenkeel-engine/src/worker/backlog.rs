//! What waits for a worker, and whether something may start beside it.

use std::sync::atomic::Ordering;

use evenkeel_core::{Definition, TenantNo};

use super::Worker;
use crate::settings::Settings;

impl Worker {
    /// May a job with this definition start here without waiting in the queue?
    /// Only a claim counts how many run under a limit.
    pub fn takes_directly(
        &self,
        definition: &Definition,
        tenant: TenantNo,
        settings: &Settings,
    ) -> bool {
        definition.concurrency_key.is_none()
            && !settings.limits.bind(tenant, definition.lane)
            && !definition.dont_run_on_nodes.contains(&settings.node_name)
            && settings.pools.contains(&definition.pool)
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

    /// Takes up to `wanted` places for a claim, which holds them until [`Worker::note_claimed`] or
    /// [`Worker::claim_failed`].
    pub fn take_slots_to_claim(&self, wanted: usize) -> usize {
        let slots = self.take_slots(wanted);
        self.claiming.store(slots, Ordering::Release);
        slots
    }

    /// The store did not answer the claim.
    pub fn claim_failed(&self) {
        self.claiming.store(0, Ordering::Release);
    }

    /// Are more runs due than workers are free? Places that a claim holds count as free: it gives back
    /// those that it has no use for.
    pub fn has_fewer_slots_than(&self, due: usize) -> bool {
        due > self.slots.free() + self.claiming.load(Ordering::Acquire)
    }

    /// Remembers what was queued before a claim, for [`Worker::note_claimed`].
    pub fn queued_before(&self) -> u64 {
        self.queued.load(Ordering::Acquire)
    }

    /// How many attempts this node has claimed.
    pub fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Acquire)
    }

    /// A claim found so many, and more than it could take, or not. What was queued meanwhile may not
    /// have been seen by it.
    pub fn note_claimed(&self, found: usize, more: bool, queued_before: u64) {
        self.claimed.fetch_add(found as u64, Ordering::AcqRel);
        self.claiming.store(0, Ordering::Release);
        let backlog = more || self.queued.load(Ordering::Acquire) != queued_before;
        self.backlog.store(backlog, Ordering::Release);
    }
}
