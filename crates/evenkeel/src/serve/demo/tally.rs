//! Counts the activity of the past as a node counts it while it runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{AttemptKey, NodeNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{ActivityDelta, FailureDelta, RunStatsDelta, Store, StoreError};

use super::sample::DAY;

/// The counts of one day.
struct Day {
    totals: RunStatsDelta,
    failures: BTreeMap<Fingerprint, FailureDelta>,
    activity: BTreeMap<Slot, ActivityCounts>,
}

pub struct Tally {
    tenant: TenantNo,
    /// The first failure of each group. The store takes the time of the report for the time of the
    /// first failure, so these failures are reported one by one.
    first_failures: BTreeMap<Fingerprint, FailureDelta>,
    /// The counts by day since 1970.
    days: BTreeMap<i64, Day>,
}

/// An attempt that has ended.
pub struct Ending<'a> {
    pub key: AttemptKey,
    pub outcome: Outcome,
    pub took: Span,
    pub at: Timestamp,
    pub error: Option<&'a str>,
    /// True if the attempt is in the history.
    pub is_stored: bool,
}

impl Tally {
    pub const fn new(tenant: TenantNo) -> Self {
        Self { tenant, first_failures: BTreeMap::new(), days: BTreeMap::new() }
    }

    pub fn fired(&mut self, at: Timestamp) {
        self.slot(at).fired += 1;
    }

    pub fn started(&mut self, at: Timestamp, lateness: Span) {
        self.slot(at).lateness.record(lateness);
    }

    pub fn skipped(&mut self, at: Timestamp, reason: SkipReason) {
        self.slot(at).skipped.add(reason, 1);
    }

    pub fn ended(&mut self, end: &Ending<'_>) {
        self.slot(end.at).add_ended(end.outcome, end.took);
        self.day(end.at).totals.add_ended(end.key.attempt, end.outcome, end.took);
        // A failure group names its newest attempt, which must be in the history.
        if let Some(error) = end.error.filter(|_| end.is_stored) {
            self.failed(end.key, end.at, error);
        }
    }

    fn failed(&mut self, newest: AttemptKey, at: Timestamp, error: &str) {
        let (tenant, fingerprint) = (self.tenant, Fingerprint::of(error));
        let error = error.to_owned();
        let failure = FailureDelta { tenant, fingerprint, count: 1, newest, at, error };
        if let Entry::Vacant(first) = self.first_failures.entry(fingerprint) {
            first.insert(failure);
            return;
        }
        let failures = &mut self.day(at).failures;
        let before = failures.get(&fingerprint).map_or(0, |group| group.count);
        // Attempts end in the order of time.
        failures.insert(fingerprint, FailureDelta { count: before + 1, ..failure });
    }

    /// Stores the counts as the node `node`.
    pub async fn store(
        self,
        store: &dyn Store,
        node: NodeNo,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tenant = self.tenant;
        for first in self.first_failures.into_values() {
            let at = first.at;
            store.add_run_stats(node, Vec::new(), vec![first], Vec::new(), at).await?;
        }
        for (number, day) in self.days {
            let end = Timestamp::from_micros((number + 1) * DAY.cast_signed() * 1_000_000);
            let activity = day.activity.into_iter();
            let activity = activity.map(|(slot, counts)| ActivityDelta { tenant, slot, counts });
            let failures = day.failures.into_values().collect();
            let totals = vec![day.totals];
            store.add_run_stats(node, totals, failures, activity.collect(), end.min(now)).await?;
        }
        Ok(())
    }

    fn slot(&mut self, at: Timestamp) -> &mut ActivityCounts {
        self.day(at).activity.entry(Slot::of(at)).or_default()
    }

    fn day(&mut self, at: Timestamp) -> &mut Day {
        let tenant = self.tenant;
        let number = at.as_micros().div_euclid(DAY.cast_signed() * 1_000_000);
        self.days.entry(number).or_insert_with(|| Day {
            totals: RunStatsDelta::none(tenant),
            failures: BTreeMap::new(),
            activity: BTreeMap::new(),
        })
    }
}
