//! Counts of load, and moves.

use async_trait::async_trait;
use evenkeel_core::balance::{Placement, RhythmKey};
use evenkeel_core::{JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    BalanceStore, MoveBatch, Moved, Now, Page, PageRequest, Rebalance, RebalancePart,
    RebalanceState, RhythmCount, Scope, ScoreKept, StoreError, Weighed,
};
use uuid::Uuid;

use crate::PostgresStore;

#[async_trait]
impl BalanceStore for PostgresStore {
    async fn rhythms(
        &self,
        _after: Option<(TenantNo, RhythmKey)>,
        _limit: u32,
    ) -> Result<Vec<RhythmCount>, StoreError> {
        unimplemented!()
    }
    async fn own_rhythms(
        &self,
        _scope: &Scope,
        _after: Option<RhythmKey>,
        _limit: u32,
    ) -> Result<Vec<RhythmCount>, StoreError> {
        unimplemented!()
    }
    async fn count_uncounted(&self, _limit: u32) -> Result<u32, StoreError> {
        unimplemented!()
    }
    async fn weigh(&self, _after: Option<JobNo>, _limit: u32) -> Result<Weighed, StoreError> {
        unimplemented!()
    }
    async fn placements(
        &self,
        _scope: &Scope,
        _after: Option<JobNo>,
        _limit: u32,
    ) -> Result<Vec<Placement>, StoreError> {
        unimplemented!()
    }
    async fn placements_of(
        &self,
        _scope: &Scope,
        _jobs: &[JobNo],
    ) -> Result<Vec<Placement>, StoreError> {
        unimplemented!()
    }
    async fn plan_rebalance(
        &self,
        _scope: &Scope,
        _rebalance: Rebalance,
        _parts: Vec<Vec<u8>>,
    ) -> Result<(), StoreError> {
        unimplemented!()
    }
    async fn get_rebalance(
        &self,
        _scope: &Scope,
        _id: Uuid,
    ) -> Result<Option<Rebalance>, StoreError> {
        unimplemented!()
    }
    async fn rebalance_part(
        &self,
        _scope: &Scope,
        _id: Uuid,
        _part: u32,
    ) -> Result<Option<RebalancePart>, StoreError> {
        unimplemented!()
    }
    async fn list_rebalances(
        &self,
        _scope: &Scope,
        _page: PageRequest<(Timestamp, Uuid)>,
    ) -> Result<Page<Rebalance, (Timestamp, Uuid)>, StoreError> {
        unimplemented!()
    }
    async fn begin_rebalance(
        &self,
        _scope: &Scope,
        _id: Uuid,
        _silent_before: Timestamp,
        _now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        unimplemented!()
    }
    async fn end_rebalance(
        &self,
        _scope: &Scope,
        _id: Uuid,
        _state: RebalanceState,
        _now: Now,
    ) -> Result<Option<Rebalance>, StoreError> {
        unimplemented!()
    }
    async fn move_jobs(
        &self,
        _scope: &Scope,
        _batch: MoveBatch,
        _now: Now,
    ) -> Result<Moved, StoreError> {
        unimplemented!()
    }
    async fn keep_score(&self, _tenant: TenantNo, _score: ScoreKept) -> Result<bool, StoreError> {
        unimplemented!()
    }
    async fn scores(
        &self,
        _scope: &Scope,
        _from: Timestamp,
        _until: Timestamp,
        _limit: u32,
    ) -> Result<Vec<ScoreKept>, StoreError> {
        unimplemented!()
    }
    async fn forget_balance(
        &self,
        _scores_before: Timestamp,
        _plans_before: Timestamp,
        _limit: u32,
    ) -> Result<u64, StoreError> {
        unimplemented!()
    }
}
