//! Counts what happens to runs per tenant and time slot, until [`RunStats`](super::run_stats::RunStats)
//! stores the counts.

use std::collections::BTreeMap;

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{ActivityDelta, Fire};

/// Maximum number of time slots of tenants in one write of the statistics (about 5 MB). Activity in
/// further time slots is not counted until the next write.
const SLOTS_MAX: usize = 20_000;

/// Activity that is not written to the store yet.
#[derive(Debug, Default)]
pub struct PendingActivity(BTreeMap<(TenantNo, Slot), ActivityCounts>);

impl PendingActivity {
    pub fn ended(&mut self, tenant: TenantNo, at: Timestamp, outcome: Outcome, took: Span) {
        if let Some(counts) = self.of(tenant, Slot::of(at)) {
            counts.add_ended(outcome, took);
        }
    }

    pub fn add(&mut self, batch: &BatchActivity) {
        for (tenant, counts) in &batch.tenants {
            if let Some(sum) = self.of(*tenant, batch.slot) {
                sum.merge(counts);
            }
        }
    }

    /// Adds earlier activity, which could not be stored.
    pub fn put_back(&mut self, earlier: Self) {
        for ((tenant, slot), counts) in earlier.0 {
            if let Some(sum) = self.of(tenant, slot) {
                sum.merge(&counts);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn deltas(&self) -> Vec<ActivityDelta> {
        let delta = |(&(tenant, slot), &counts)| ActivityDelta { tenant, slot, counts };
        self.0.iter().map(delta).collect()
    }

    fn of(&mut self, tenant: TenantNo, slot: Slot) -> Option<&mut ActivityCounts> {
        if self.0.len() >= SLOTS_MAX && !self.0.contains_key(&(tenant, slot)) {
            return None;
        }
        Some(self.0.entry((tenant, slot)).or_default())
    }
}

/// Activity of one batch of fires or claims. A batch is counted without a lock, and added to the
/// pending activity at once.
#[derive(Debug)]
pub struct BatchActivity {
    slot: Slot,
    tenants: BTreeMap<TenantNo, ActivityCounts>,
}

impl BatchActivity {
    /// Returns the activity of a batch that was committed at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { slot: Slot::of(now), tenants: BTreeMap::new() }
    }

    /// Counts a committed fire: its run, and the scheduled times that it skips.
    pub fn fired(&mut self, fire: &Fire) {
        let counts = self.tenants.entry(fire.tenant).or_default();
        counts.fired += u64::from(fire.start.is_some());
        if let Some(skip) = &fire.skip {
            counts.skipped.add(skip.reason, skip.count);
        }
    }

    /// Counts a fired delayed attempt. A retry is not a new run.
    pub fn fired_delayed(&mut self, tenant: TenantNo, attempt: AttemptNo) {
        if attempt == AttemptNo::FIRST {
            self.tenants.entry(tenant).or_default().fired += 1;
        }
    }

    /// Counts the start of an attempt, `lateness` after the time from which it was allowed to
    /// start. The lateness of a retry says nothing about the scheduler, so it is not counted.
    pub fn started(&mut self, tenant: TenantNo, attempt: AttemptNo, lateness: Span) {
        if attempt == AttemptNo::FIRST {
            self.tenants.entry(tenant).or_default().lateness.record(lateness);
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobNo;
    use evenkeel_core::advance::{SkipReason, SkippedTimes};
    use evenkeel_store::Start;

    use super::*;

    const SLOT: Slot = Slot(3);

    fn fire(start: bool, skipped: u64) -> Fire {
        let due = SLOT.start();
        let skip = SkippedTimes { from: due, to: due, count: skipped, reason: SkipReason::Overlap };
        Fire {
            job: JobNo(1),
            tenant: TenantNo(1),
            generation: 1,
            due,
            head: None,
            skip: (skipped > 0).then_some(skip),
            start: start.then_some((due, Start::Claimed)),
            idle_only: false,
            next_at: None,
        }
    }

    fn batch(at: Timestamp, tenant: TenantNo) -> BatchActivity {
        let mut batch = BatchActivity::at(at);
        batch.fired_delayed(tenant, AttemptNo::FIRST);
        batch
    }

    #[test]
    fn fires_count_their_runs_and_skipped_times() {
        let mut batch = BatchActivity::at(SLOT.start());
        for fire in [fire(true, 0), fire(true, 2), fire(false, 3)] {
            batch.fired(&fire);
        }
        let mut pending = PendingActivity::default();
        pending.add(&batch);
        let counts = pending.deltas()[0].counts;
        assert_eq!((counts.fired, counts.skipped.of(SkipReason::Overlap)), (2, 5));
    }

    #[test]
    fn retries_are_neither_fired_runs_nor_late() {
        let mut batch = BatchActivity::at(SLOT.start());
        for attempt in [AttemptNo::FIRST, AttemptNo(1), AttemptNo(2)] {
            batch.fired_delayed(TenantNo(1), attempt);
            batch.started(TenantNo(1), attempt, Span::from_secs(2));
        }
        let mut pending = PendingActivity::default();
        pending.add(&batch);
        let counts = pending.deltas()[0].counts;
        assert_eq!((counts.fired, counts.lateness.count()), (1, 1));
    }

    #[test]
    fn activity_counts_in_the_slot_and_tenant_of_the_event() {
        let mut pending = PendingActivity::default();
        let last = SLOT.next().start().saturating_sub(Span::from_micros(1));
        pending.add(&batch(last, TenantNo(2)));
        pending.add(&batch(SLOT.next().start(), TenantNo(1)));
        pending.ended(TenantNo(2), last, Outcome::Failed, Span::from_secs(9));
        let found: Vec<_> = pending
            .deltas()
            .iter()
            .map(|delta| (delta.tenant.0, delta.slot, delta.counts.fired, delta.counts.failed))
            .collect();
        assert_eq!(found, [(1, SLOT.next(), 1, 0), (2, SLOT, 1, 1)]);
    }

    #[test]
    fn pending_activity_is_bounded() {
        let mut pending = PendingActivity::default();
        for n in 0..20_005 {
            pending.add(&batch(SLOT.start(), TenantNo(n)));
        }
        assert_eq!(pending.deltas().len(), SLOTS_MAX);
        let mut newer = PendingActivity::default();
        newer.add(&batch(SLOT.start(), TenantNo(0)));
        newer.add(&batch(SLOT.start(), TenantNo(-1)));
        newer.put_back(pending);
        let deltas = newer.deltas();
        assert_eq!(deltas.len(), SLOTS_MAX);
        assert_eq!((deltas[0].counts.fired, deltas[1].counts.fired), (1, 2));
    }
}
