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

use self::load_profiles::read_count;
use self::moves::read_placement;
use self::rebalances::{list_rebalances, part_number, read_part, read_rebalance};
use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{column, count, get, micros, time};

#[async_trait]
impl BalanceStore for PostgresStore {
    async fn load_profiles(
        &self,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        let (tenant, key) = after.map_or((i32::MIN, i64::MIN), |(tenant, key)| (tenant.0, key.0));
        let params = params![tenant, key, i64::from(limit)];
        self.api.rows(sql!("load_profiles"), params, read_count).await
    }

    async fn tenant_load_profiles(
        &self,
        scope: &Scope,
        after: Option<LoadProfileKey>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        let params = params![scope.tenant.0, after.map(|key| key.0), i64::from(limit)];
        self.api.rows(sql!("tenant_load_profiles"), params, read_count).await
    }

    async fn recount_load(
        &self,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Recounted, StoreError> {
        run!(self.api, |connection| recount::recount_load(connection, after, limit).await)
    }

    async fn placements(
        &self,
        scope: &Scope,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        let (tenant, after) = (scope.tenant.0, after.map_or(i64::MIN, |job| job.0));
        run!(self.api, |connection| {
            moves::placements(connection, tenant, after, limit as usize).await
        })
    }

    async fn placements_of(
        &self,
        scope: &Scope,
        jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        let params = params![scope.tenant.0, column(jobs, |job| job.0)];
        self.api.rows(sql!("placements_of"), params, read_placement).await
    }

    async fn plan_rebalance(
        &self,
        scope: &Scope,
        rebalance: Rebalance,
        parts: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let tenant = scope.tenant.0;
        transaction!(self.api, (rebalance, parts), |connection, (rebalance, parts)| {
            rebalances::plan_rebalance(connection, tenant, rebalance, parts).await
        })
    }

    async fn get_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
    ) -> Result<Option<Rebalance>, StoreError> {
        let params = params![id, scope.tenant.0];
        self.api.maybe_row(sql!("get_rebalance"), params, read_rebalance).await
    }

    async fn rebalance_part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<Option<RebalancePart>, StoreError> {
        let params = params![id, scope.tenant.0, part_number(part)];
        self.api.maybe_row(sql!("rebalance_part"), params, read_part).await
    }

    async fn list_rebalances(
        &self,
        scope: &Scope,
        page: PageRequest<(Timestamp, Uuid)>,
    ) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| list_rebalances(connection, tenant, page).await)
    }

    async fn begin_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        silent_before: Timestamp,
        now: Now,
    ) -> Result<Option<BeganRebalance>, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, |connection| {
            rebalances::begin_rebalance(connection, tenant, id, silent_before, now).await
        })
    }

    async fn end_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        state: RebalanceState,
        now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        run!(self.api, |connection| {
            rebalances::end_rebalance(connection, tenant, id, state, now).await
        })
    }

    async fn move_jobs(
        &self,
        scope: &Scope,
        batch: MoveBatch,
        now: Now,
    ) -> Result<Moved, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, batch, |connection, batch| {
            moves::move_jobs(connection, tenant, batch, now).await
        })
    }

    async fn save_score(&self, tenant: TenantNo, score: SavedScore) -> Result<bool, StoreError> {
        let SavedScore { hour, score, next_score, cost_score, peak, mean, jobs } = score;
        let (hour, jobs) = (hour.as_micros(), i64::try_from(jobs).unwrap_or(i64::MAX));
        let params = params![tenant.0, hour, score, next_score, cost_score, peak, mean, jobs];
        Ok(self.api.change(sql!("save_score"), params).await? == 1)
    }

    async fn scores(
        &self,
        scope: &Scope,
        from: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SavedScore>, StoreError> {
        let (from, until) = (from.as_micros(), until.as_micros());
        let params = params![scope.tenant.0, from, until, i64::from(limit)];
        self.api.rows(sql!("scores"), params, read_score).await
    }

    async fn prune_balance(
        &self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        run!(self.api, |connection| {
            prune::prune_balance(connection, scores_before, plans_before, limit).await
        })
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
