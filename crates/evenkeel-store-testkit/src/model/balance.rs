//! Stores rebalances, which move jobs to other start times, and balance scores.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    BalanceStore, BeganRebalance, LoadProfileCount, MoveBatch, Moved, Now, Page, PageRequest,
    REBALANCES_KEPT, Rebalance, RebalancePart, RebalanceState, Recounted, SavedScore, Scope,
    StoreError,
};
use uuid::Uuid;

use super::ModelStore;
use super::data::{Data, count};
use super::lists::{cut, with_items};

pub(super) type Rebalances = BTreeMap<(TenantNo, Uuid), (Rebalance, Vec<RebalancePart>)>;
pub(super) type Scores = BTreeMap<(TenantNo, Timestamp), SavedScore>;

impl Data {
    fn rebalance(&mut self, scope: &Scope, id: Uuid) -> Option<&mut Rebalance> {
        self.rebalances.get_mut(&(scope.tenant, id)).map(|(rebalance, _)| rebalance)
    }

    fn list_rebalances(
        &self,
        scope: &Scope,
        page: PageRequest<(Timestamp, Uuid)>,
    ) -> Page<Rebalance, (Timestamp, Uuid)> {
        let own = self.rebalances.iter().filter(|((tenant, _), _)| *tenant == scope.tenant);
        let acted = own.filter(|(_, (one, _))| one.state != RebalanceState::Planned);
        let mut places: Vec<_> = acted.map(|(_, (one, _))| (one.created_at, one.id)).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        let page = cut(places, page, |one, other| one < other);
        with_items(page, |(_, id)| {
            self.rebalances.get(&(scope.tenant, *id)).map(|(rebalance, _)| rebalance.clone())
        })
    }

    fn begin_rebalance(
        &mut self,
        scope: &Scope,
        id: Uuid,
        silent_before: Timestamp,
        now: Timestamp,
    ) -> Option<BeganRebalance> {
        let wanted = self.rebalance(scope, id)?.clone();
        let own = self.rebalances.iter().filter(|((tenant, _), _)| *tenant == scope.tenant);
        let running = own.filter(|(_, (one, _))| one.state == RebalanceState::Running);
        let others: Vec<Rebalance> =
            running.map(|(_, (one, _))| one.clone()).filter(|one| one.id != id).collect();
        if let Some(other) = others.iter().find(|one| !one.is_silent(silent_before)) {
            return Some(BeganRebalance::Other(other.clone()));
        }
        if !wanted.may_begin(silent_before) {
            return Some(BeganRebalance::Other(wanted));
        }
        let undone = wanted.undoes.and_then(|undone| self.rebalance(scope, undone));
        let undone_by = undone.and_then(|undone| undone.undone_by).filter(|by| *by != id);
        let other = undone_by.and_then(|by| self.rebalance(scope, by));
        if let Some(other) = other.filter(|other| other.is_complete()) {
            return Some(BeganRebalance::Other(other.clone()));
        }
        for silent in others {
            self.end_rebalance(scope, silent.id, RebalanceState::Stopped, now);
        }
        if let Some(undone) = wanted.undoes.and_then(|undone| self.rebalance(scope, undone)) {
            undone.undone_by = Some(id);
        }
        let begun = self.rebalance(scope, id)?;
        begun.state = RebalanceState::Running;
        begun.touched_at = Some(now);
        begun.ended_at = None;
        Some(BeganRebalance::Now(begun.clone()))
    }

    fn end_rebalance(
        &mut self,
        scope: &Scope,
        id: Uuid,
        state: RebalanceState,
        now: Timestamp,
    ) -> Option<Rebalance> {
        let rebalance = self.rebalance(scope, id)?;
        let ends = matches!(state, RebalanceState::Done | RebalanceState::Stopped);
        if ends && rebalance.state == RebalanceState::Running {
            rebalance.state = state;
            rebalance.ended_at = Some(now);
        }
        Some(rebalance.clone())
    }

    fn prune_balance(
        &mut self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> u64 {
        let old = self.scores.keys().filter(|(_, hour)| *hour < scores_before);
        let mut scores: Vec<_> = old.map(|(tenant, hour)| (*hour, *tenant)).collect();
        let acted_before = plans_before.saturating_sub(REBALANCES_KEPT);
        let old = self.rebalances.iter().filter(|(_, (one, _))| match one.state {
            RebalanceState::Planned => one.created_at < plans_before,
            RebalanceState::Running => one.touched_at.is_some_and(|at| at < acted_before),
            RebalanceState::Done | RebalanceState::Stopped => one.created_at < acted_before,
        });
        let mut plans: Vec<_> = old.map(|(place, (one, _))| (one.created_at, *place)).collect();
        scores.sort_unstable();
        scores.truncate(limit as usize);
        plans.sort_unstable();
        plans.truncate(limit as usize);
        for (hour, tenant) in &scores {
            self.scores.remove(&(*tenant, *hour));
        }
        for (_, place) in &plans {
            self.rebalances.remove(place);
        }
        count(scores.len() + plans.len())
    }
}

#[async_trait]
impl BalanceStore for ModelStore {
    async fn load_profiles(
        &self,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        Ok(self.lock().list_rhythms(None, after, limit))
    }

    async fn tenant_load_profiles(
        &self,
        scope: &Scope,
        after: Option<LoadProfileKey>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        let tenant = scope.tenant;
        Ok(self.lock().list_rhythms(Some(tenant), after.map(|key| (tenant, key)), limit))
    }

    async fn recount_load(
        &self,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Recounted, StoreError> {
        Ok(self.lock().recount_load(after, limit))
    }

    async fn placements(
        &self,
        scope: &Scope,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        Ok(self.lock().placements(scope, after, limit))
    }

    async fn placements_of(
        &self,
        scope: &Scope,
        jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        Ok(self.lock().placements_of(scope, jobs))
    }

    async fn plan_rebalance(
        &self,
        scope: &Scope,
        rebalance: Rebalance,
        parts: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let parts = parts.into_iter().map(|moves| RebalancePart { moves, made: None }).collect();
        let place = (scope.tenant, rebalance.id);
        self.lock().rebalances.insert(place, (rebalance, parts));
        Ok(())
    }

    async fn get_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
    ) -> Result<Option<Rebalance>, StoreError> {
        Ok(self.lock().rebalance(scope, id).cloned())
    }

    async fn rebalance_part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<Option<RebalancePart>, StoreError> {
        let data = self.lock();
        let parts = data.rebalances.get(&(scope.tenant, id)).map(|(_, parts)| parts);
        Ok(parts.and_then(|parts| parts.get(part as usize)).cloned())
    }

    async fn list_rebalances(
        &self,
        scope: &Scope,
        page: PageRequest<(Timestamp, Uuid)>,
    ) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
        Ok(self.lock().list_rebalances(scope, page))
    }

    async fn begin_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        silent_before: Timestamp,
        now: Now,
    ) -> Result<Option<BeganRebalance>, StoreError> {
        Ok(self.lock().begin_rebalance(scope, id, silent_before, self.resolve(now)))
    }

    async fn end_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        state: RebalanceState,
        now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        Ok(self.lock().end_rebalance(scope, id, state, self.resolve(now)))
    }

    async fn move_jobs(
        &self,
        scope: &Scope,
        batch: MoveBatch,
        now: Now,
    ) -> Result<Moved, StoreError> {
        Ok(self.lock().move_jobs(scope, batch, self.resolve(now)))
    }

    async fn save_score(&self, tenant: TenantNo, score: SavedScore) -> Result<bool, StoreError> {
        let mut data = self.lock();
        let place = (tenant, score.hour);
        let is_new = !data.scores.contains_key(&place);
        data.scores.entry(place).or_insert(score);
        Ok(is_new)
    }

    async fn scores(
        &self,
        scope: &Scope,
        from: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SavedScore>, StoreError> {
        let data = self.lock();
        let own = data.scores.iter().filter(|((tenant, _), _)| *tenant == scope.tenant);
        let asked = own.filter(|((_, hour), _)| from <= *hour && *hour < until);
        Ok(asked.map(|(_, score)| *score).take(limit as usize).collect())
    }

    async fn prune_balance(
        &self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        Ok(self.lock().prune_balance(scores_before, plans_before, limit))
    }
}
