//! Load profiles, rebalances and balance scores.

mod load_profiles;
mod moves;
mod prune;
mod rebalances;
mod recount;

use async_trait::async_trait;
use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    BalanceStore, BeganRebalance, LoadProfileCount, MoveBatch, Moved, Now, Page, PageRequest,
    Rebalance, RebalancePart, RebalanceState, Recounted, SavedScore, Scope, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use load_profiles::{Counts, LoadColumns, count_ended};

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{count, get, time};

#[async_trait]
impl BalanceStore for PostgresStore {
    async fn load_profiles(
        &self,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        load_profiles::load_profiles(self, after, limit).await
    }

    async fn tenant_load_profiles(
        &self,
        scope: &Scope,
        after: Option<LoadProfileKey>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        load_profiles::tenant_load_profiles(self, scope, after, limit).await
    }

    async fn recount_load(
        &self,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Recounted, StoreError> {
        recount::recount_load(self, after, limit).await
    }

    async fn placements(
        &self,
        scope: &Scope,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        moves::placements(self, scope, after, limit).await
    }

    async fn placements_of(
        &self,
        scope: &Scope,
        jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        moves::placements_of(self, scope, jobs).await
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
        self.api
            .run((tenant.0, score), |connection, args| async move {
                let (tenant, score) = &*args;
                let SavedScore { hour, score, next_score, cost_score, peak, mean, jobs } = score;
                let (hour, jobs) = (hour.as_micros(), i64::try_from(*jobs).unwrap_or(i64::MAX));
                let sql = sql!("save_score");
                let kept = connection
                    .change(sql, &[tenant, &hour, score, next_score, cost_score, peak, mean, &jobs])
                    .await?;
                Ok(kept == 1)
            })
            .await
    }

    async fn scores(
        &self,
        scope: &Scope,
        from: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SavedScore>, StoreError> {
        let args = (scope.tenant.0, from.as_micros(), until.as_micros(), i64::from(limit));
        self.api
            .run(args, |connection, args| async move {
                let (tenant, from, until, limit) = &*args;
                let sql = sql!("scores");
                connection
                    .rows(sql, &[tenant, from, until, limit])
                    .await?
                    .iter()
                    .map(read_score)
                    .collect()
            })
            .await
    }

    async fn prune_balance(
        &self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        prune::prune_balance(self, scores_before, plans_before, limit).await
    }
}

fn read_score(row: &Row) -> Tried<SavedScore> {
    Ok(SavedScore {
        hour: time(row, "hour")?,
        score: get(row, "score")?,
        next_score: get(row, "next_score")?,
        cost_score: get(row, "cost_score")?,
        peak: get(row, "peak")?,
        mean: get(row, "mean")?,
        jobs: count(row, "jobs")?,
    })
}
