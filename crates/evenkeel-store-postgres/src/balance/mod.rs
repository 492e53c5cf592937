//! Counts of load, and moves.

mod counts;
mod moves;
mod placements;
mod rebalances;
mod rhythms;
mod scores;

use async_trait::async_trait;
use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    BalanceStore, BeganRebalance, LoadProfileCount, MoveBatch, Moved, Now, Page, PageRequest,
    Rebalance, RebalancePart, RebalanceState, Recounted, SavedScore, Scope, StoreError,
};
use uuid::Uuid;

pub(crate) use counts::{Counts, LoadColumns, count_ended};

use crate::PostgresStore;

#[async_trait]
impl BalanceStore for PostgresStore {
    async fn load_profiles(
        &self,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        rhythms::rhythms(self, after, limit).await
    }

    async fn tenant_load_profiles(
        &self,
        scope: &Scope,
        after: Option<LoadProfileKey>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        rhythms::tenant_load_profiles(self, scope, after, limit).await
    }

    async fn count_uncounted(&self, limit: u32) -> Result<u32, StoreError> {
        rhythms::count_uncounted(self, limit).await
    }

    async fn recount_load(
        &self,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Recounted, StoreError> {
        rhythms::recount_load(self, after, limit).await
    }

    async fn placements(
        &self,
        scope: &Scope,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        placements::placements(self, scope, after, limit).await
    }

    async fn placements_of(
        &self,
        scope: &Scope,
        jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        placements::placements_of(self, scope, jobs).await
    }

    async fn plan_rebalance(
        &self,
        scope: &Scope,
        rebalance: Rebalance,
        parts: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        rebalances::plan_rebalance(self, scope, rebalance, parts).await
    }

    async fn get_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
    ) -> Result<Option<Rebalance>, StoreError> {
        rebalances::get_rebalance(self, scope, id).await
    }

    async fn rebalance_part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<Option<RebalancePart>, StoreError> {
        rebalances::rebalance_part(self, scope, id, part).await
    }

    async fn list_rebalances(
        &self,
        scope: &Scope,
        page: PageRequest<(Timestamp, Uuid)>,
    ) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
        rebalances::list_rebalances(self, scope, page).await
    }

    async fn begin_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        silent_before: Timestamp,
        now: Now,
    ) -> Result<Option<BeganRebalance>, StoreError> {
        rebalances::begin_rebalance(self, scope, id, silent_before, now).await
    }

    async fn end_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        state: RebalanceState,
        now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        rebalances::end_rebalance(self, scope, id, state, now).await
    }

    async fn move_jobs(
        &self,
        scope: &Scope,
        batch: MoveBatch,
        now: Now,
    ) -> Result<Moved, StoreError> {
        moves::move_jobs(self, scope, batch, now).await
    }

    async fn save_score(&self, tenant: TenantNo, score: SavedScore) -> Result<bool, StoreError> {
        scores::save_score(self, tenant, score).await
    }

    async fn scores(
        &self,
        scope: &Scope,
        from: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SavedScore>, StoreError> {
        scores::scores(self, scope, from, until, limit).await
    }

    async fn prune_balance(
        &self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        scores::prune_balance(self, scores_before, plans_before, limit).await
    }
}
