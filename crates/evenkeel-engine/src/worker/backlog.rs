//! Tracks whether attempts wait in the queue, so that newly due jobs do not overtake them.

use std::sync::atomic::Ordering;

use evenkeel_core::aging::Rank;
use evenkeel_core::order::Lane;
use evenkeel_core::{Definition, TenantNo};

use super::Worker;
use crate::scheduler::due_jobs::LaneRanks;
use crate::settings::Settings;
use crate::sync::lock;

impl Worker {
    /// True if runs of the job may start on this node without being queued. Runs under a
    /// concurrency limit must be queued, because only a claim from the queue counts permits.
    pub fn takes_directly(
        &self,
        definition: &Definition,
        tenant: TenantNo,
        settings: &Settings,
    ) -> bool {
        definition.concurrency_key.is_none()
            && !settings.limits.apply_to(tenant, definition.lane)
            && !definition.dont_run_on_nodes.contains(&settings.node_name)
            && settings.pools.contains(&definition.pool)
    }

    /// True if the queue holds attempts that this node could claim. While claimable attempts wait
    /// in the queue, due jobs are queued behind them instead of started directly.
    pub fn has_backlog(&self) -> bool {
        self.backlog.load(Ordering::Acquire)
    }

    /// Records that attempts of unknown rank, which this node could claim, were queued.
    pub fn note_queued(&self) {
        Lane::ALL.into_iter().for_each(|lane| self.note_queued_in(lane, Rank(i64::MIN)));
    }

    /// Records that an attempt which this node could claim was queued.
    pub fn note_queued_in(&self, lane: Lane, rank: Rank) {
        let lowest = &mut lock(&self.lowest_queued)[lane as usize];
        *lowest = Some(lowest.map_or(rank, |lowest| lowest.min(rank)));
        self.queued.fetch_add(1, Ordering::AcqRel);
        self.backlog.store(true, Ordering::Release);
        self.arrivals.notify_one();
    }

    /// Returns the lowest rank per lane of the attempts that were queued since the backlog began.
    pub fn lowest_queued(&self) -> LaneRanks {
        *lock(&self.lowest_queued)
    }

    /// Waits until this node has queued attempts that it could claim itself. The wait does not
    /// depend on a signal from the store, which could be lost.
    pub async fn arrived(&self) {
        self.arrivals.notified().await;
    }

    /// Takes up to `wanted` worker slots for a claim. A claim holds its worker slots until
    /// [`Worker::note_claimed`] or [`Worker::claim_failed`] is called.
    pub fn take_slots_to_claim(&self, wanted: usize) -> usize {
        let slots = self.take_slots(wanted);
        self.claiming.store(slots, Ordering::Release);
        slots
    }

    pub fn claim_failed(&self) {
        self.claiming.store(0, Ordering::Release);
    }

    /// True if a worker slot is free, or held by a claim that may give it back.
    pub fn has_free_slot(&self) -> bool {
        !self.has_fewer_slots_than(1)
    }

    /// True if `due` is higher than the number of free worker slots. Worker slots that a claim
    /// holds count as free, because the claim gives back the slots that it does not use.
    pub fn has_fewer_slots_than(&self, due: usize) -> bool {
        due > self.slots.free() + self.claiming.load(Ordering::Acquire)
    }

    /// Returns how often claimable attempts were queued so far. Claimers read this number before a
    /// claim and pass it to [`Worker::note_claimed`].
    pub fn queued_before(&self) -> u64 {
        self.queued.load(Ordering::Acquire)
    }

    /// Number of attempts that this node has claimed since it joined the cluster.
    pub fn claimed(&self) -> u64 {
        self.claimed.load(Ordering::Acquire)
    }

    /// Records that a claim returned `found` attempts. `more` is true if more attempts wait in the
    /// queue. If attempts were queued after `queued_before` was read, the claim may have missed
    /// them.
    pub fn note_claimed(&self, found: usize, more: bool, queued_before: u64) {
        self.claimed.fetch_add(found as u64, Ordering::AcqRel);
        self.claiming.store(0, Ordering::Release);
        let backlog = more || self.queued.load(Ordering::Acquire) != queued_before;
        if !backlog {
            *lock(&self.lowest_queued) = LaneRanks::default();
        }
        self.backlog.store(backlog, Ordering::Release);
    }
}
