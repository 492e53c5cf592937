//! Totals of attempts by outcome, and activity per time slot.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{NodeNo, Slot, TenantNo, Timestamp};
use evenkeel_store::{
    ActivityDelta, FailureCursor, FailureDelta, FailureGroup, NodeState, Page, PageRequest,
    RunStatsDelta, RunStatsStore, RunTotals, Scope, SlotActivity, StoreError,
};

use super::ModelStore;
use super::data::{Data, count};
use super::lists::{cut, with_items};

#[derive(Default)]
pub(super) struct Sums {
    tenants: BTreeMap<TenantNo, RunTotals>,
    running: BTreeMap<NodeNo, BTreeMap<TenantNo, u64>>,
    said_at: Option<Timestamp>,
    failures: BTreeMap<(TenantNo, Fingerprint), FailureGroup>,
    activity: BTreeMap<(TenantNo, Slot), ActivityCounts>,
}

impl Data {
    fn tally(
        &mut self,
        node: NodeNo,
        tallies: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        at: Timestamp,
    ) {
        let sums = &mut self.sums;
        sums.said_at = sums.said_at.max(Some(at));
        let running = tallies.iter().map(|tally| (tally.tenant, u64::from(tally.running)));
        sums.running.insert(node, running.collect());
        for tally in tallies {
            let sum = sums.tenants.entry(tally.tenant).or_default();
            sum.completed += tally.completed;
            sum.failed += tally.failed;
            sum.timed_out += tally.timed_out;
            sum.cancelled += tally.cancelled;
            sum.retries += tally.retries;
            sum.stolen += tally.stolen;
            sum.success_duration = sum.success_duration.saturating_add(tally.success_duration);
        }
        for failure in failures {
            let key = (failure.tenant, failure.fingerprint);
            let group = sums.failures.entry(key).or_insert_with(|| FailureGroup {
                fingerprint: failure.fingerprint,
                count: 0,
                first_at: at,
                last_at: failure.at,
                error: failure.error.clone(),
                newest: failure.newest,
                job: None,
                job_name: None,
            });
            group.count += failure.count;
            if failure.at >= group.last_at {
                group.last_at = failure.at;
                group.error = failure.error;
                group.newest = failure.newest;
            }
        }
    }

    fn run_totals(&self, scope: &Scope) -> RunTotals {
        let is_alive = |node: &NodeNo| {
            let state = self.node(*node).map(|node| node.state);
            matches!(state, Some(NodeState::Live | NodeState::Draining))
        };
        let alive = self.sums.running.iter().filter(|(node, _)| is_alive(node));
        let running = alive.filter_map(|(_, tenants)| tenants.get(&scope.tenant)).sum();
        let sum = self.sums.tenants.get(&scope.tenant).copied().unwrap_or_default();
        RunTotals { running, at: self.sums.said_at, ..sum }
    }

    fn list_failures(
        &self,
        scope: &Scope,
        page: PageRequest<FailureCursor>,
    ) -> Page<FailureGroup, FailureCursor> {
        let groups = self.sums.failures.iter().filter(|((tenant, _), _)| *tenant == scope.tenant);
        let mut keys: Vec<FailureCursor> =
            groups.map(|((_, fingerprint), group)| (group.last_at, *fingerprint)).collect();
        // The databases store the fingerprint as a signed number, which determines the order.
        let order = |(at, fingerprint): &FailureCursor| (*at, fingerprint.0.cast_signed());
        keys.sort_unstable_by_key(|key| std::cmp::Reverse(order(key)));
        let page = cut(keys, page, |key, after| order(key) < order(after));
        with_items(page, |(_, fingerprint)| {
            let group = self.sums.failures.get(&(scope.tenant, *fingerprint))?;
            let job = self.find(group.newest.job_no).filter(|job| !job.is_deleted());
            let job = job.filter(|job| job.tenant == scope.tenant);
            let (id, job_name) =
                (job.map(|job| job.id), job.and_then(|job| job.about.name.clone()));
            Some(FailureGroup { job: id, job_name, ..group.clone() })
        })
    }

    fn prune_failures(&mut self, before: Timestamp, limit: u32) -> u64 {
        let old = self.sums.failures.iter().filter(|(_, group)| group.last_at < before);
        let mut old: Vec<_> = old.map(|(key, group)| (group.last_at, *key)).collect();
        old.sort_unstable();
        old.truncate(limit as usize);
        for (_, key) in &old {
            self.sums.failures.remove(key);
        }
        count(old.len())
    }

    fn add_activity(&mut self, activity: Vec<ActivityDelta>) {
        for delta in activity {
            let counts = self.sums.activity.entry((delta.tenant, delta.slot)).or_default();
            counts.merge(&delta.counts);
        }
    }

    fn list_activity(
        &self,
        scope: &Scope,
        (from, until): (Slot, Slot),
        limit: u32,
    ) -> Vec<SlotActivity> {
        let slots = self.sums.activity.iter().filter(|((tenant, _), _)| *tenant == scope.tenant);
        let slots = slots.map(|((_, slot), counts)| SlotActivity { slot: *slot, counts: *counts });
        let inside = |found: &SlotActivity| from <= found.slot && found.slot < until;
        slots.filter(inside).take(limit as usize).collect()
    }

    fn prune_activity(&mut self, before: Slot, limit: u32) -> u64 {
        let keys = self.sums.activity.keys().filter(|(_, slot)| *slot < before);
        let mut old: Vec<_> = keys.copied().collect();
        old.sort_unstable_by_key(|(_, slot)| *slot);
        old.truncate(limit as usize);
        for key in &old {
            self.sums.activity.remove(key);
        }
        count(old.len())
    }
}

#[async_trait]
impl RunStatsStore for ModelStore {
    async fn add_run_stats(
        &self,
        node: NodeNo,
        tallies: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        activity: Vec<ActivityDelta>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut data = self.lock();
        data.tally(node, tallies, failures, at);
        data.add_activity(activity);
        Ok(())
    }

    async fn run_totals(&self, scope: &Scope) -> Result<RunTotals, StoreError> {
        Ok(self.lock().run_totals(scope))
    }

    async fn list_failures(
        &self,
        scope: &Scope,
        page: PageRequest<FailureCursor>,
    ) -> Result<Page<FailureGroup, FailureCursor>, StoreError> {
        Ok(self.lock().list_failures(scope, page))
    }

    async fn prune_failures(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        Ok(self.lock().prune_failures(before, limit))
    }

    async fn list_activity(
        &self,
        scope: &Scope,
        from: Slot,
        until: Slot,
        limit: u32,
    ) -> Result<Vec<SlotActivity>, StoreError> {
        Ok(self.lock().list_activity(scope, (from, until), limit))
    }

    async fn prune_activity(&self, before: Slot, limit: u32) -> Result<u64, StoreError> {
        Ok(self.lock().prune_activity(before, limit))
    }
}
