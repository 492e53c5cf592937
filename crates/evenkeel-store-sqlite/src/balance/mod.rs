//! Spreads runs evenly over time: load profiles, start times of jobs, rebalances and balance
//! scores.

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
use uuid::Uuid;

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{resolve, weight};

pub(crate) use load_profiles::{Counted, Counts};

#[async_trait]
impl BalanceStore for SqliteStore {
    async fn load_profiles(
        &self,
        after: Option<(TenantNo, LoadProfileKey)>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        self.readers.read(move |db| load_profiles::load_profiles(db, after, limit)).await
    }

    async fn tenant_load_profiles(
        &self,
        scope: &Scope,
        after: Option<LoadProfileKey>,
        limit: u32,
    ) -> Result<Vec<LoadProfileCount>, StoreError> {
        let tenant = scope.tenant;
        self.readers
            .read(move |db| load_profiles::tenant_load_profiles(db, tenant, after, limit))
            .await
    }

    async fn recount_load(
        &self,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Recounted, StoreError> {
        let (jobs, next) =
            self.engine_readers.read(move |db| recount::find_outdated(db, after, limit)).await?;
        if jobs.is_empty() {
            return Ok(Recounted { next, changed: 0 });
        }
        self.writer.write(Batch, jobs.len(), move |db| recount::recount_load(db, &jobs, next)).await
    }

    async fn placements(
        &self,
        scope: &Scope,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| moves::placements(db, tenant, after, limit)).await
    }

    async fn placements_of(
        &self,
        scope: &Scope,
        jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        let (tenant, jobs) = (scope.tenant, jobs.to_vec());
        self.readers.read(move |db| moves::placements_of(db, tenant, &jobs)).await
    }

    async fn plan_rebalance(
        &self,
        scope: &Scope,
        rebalance: Rebalance,
        parts: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let tenant = scope.tenant;
        let rows = weight(1 + parts.len(), parts.iter().map(Vec::len).sum());
        self.writer
            .write(Command, rows, move |db| rebalances::plan(db, tenant, &rebalance, &parts))
            .await
    }

    async fn get_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
    ) -> Result<Option<Rebalance>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| rebalances::get(db, tenant, id)).await
    }

    async fn rebalance_part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<Option<RebalancePart>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| rebalances::part(db, tenant, id, part)).await
    }

    async fn list_rebalances(
        &self,
        scope: &Scope,
        page: PageRequest<(Timestamp, Uuid)>,
    ) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| rebalances::list(db, tenant, page)).await
    }

    async fn begin_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        silent_before: Timestamp,
        now: Now,
    ) -> Result<Option<BeganRebalance>, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 2, move |db| {
                rebalances::begin(db, tenant, id, silent_before, resolve(now))
            })
            .await
    }

    async fn end_rebalance(
        &self,
        scope: &Scope,
        id: Uuid,
        state: RebalanceState,
        now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |db| rebalances::end(db, tenant, id, state, resolve(now)))
            .await
    }

    async fn move_jobs(
        &self,
        scope: &Scope,
        batch: MoveBatch,
        now: Now,
    ) -> Result<Moved, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Batch, batch.moves.len() + 1, move |db| {
                moves::move_jobs(db, tenant, &batch, resolve(now))
            })
            .await
    }

    async fn save_score(&self, tenant: TenantNo, score: SavedScore) -> Result<bool, StoreError> {
        self.writer.write(Batch, 1, move |db| rebalances::save_score(db, tenant, score)).await
    }

    async fn scores(
        &self,
        scope: &Scope,
        from: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<SavedScore>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| rebalances::scores(db, tenant, from, until, limit)).await
    }

    async fn prune_balance(
        &self,
        scores_before: Timestamp,
        plans_before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let has_old =
            self.engine_readers.read(move |db| prune::has_old(db, scores_before, plans_before));
        if !has_old.await? {
            return Ok(0);
        }
        self.writer
            .write(Batch, limit as usize, move |db| {
                prune::prune(db, scores_before, plans_before, limit)
            })
            .await
    }
}
