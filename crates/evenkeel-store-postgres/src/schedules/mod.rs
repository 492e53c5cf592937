//! The part of the store that the scheduler uses.

mod claim_windows;
mod due_jobs;
mod fire;
mod fire_delayed;
mod supersede;

use async_trait::async_trait;
use evenkeel_core::{AttemptKey, JobNo, NodeNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    ClaimWindow, ClosedAttempt, DueJob, Fire, FireDelayed, Fired, LookAhead, Now, Postpone,
    ScheduleStore, StoreError, Supersede,
};

use crate::PostgresStore;

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<DueJob>, StoreError> {
        due_jobs::load_due(self, shard, until, after, limit).await
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Result<Vec<DueJob>, StoreError> {
        due_jobs::load_jobs(self, jobs).await
    }

    async fn look_ahead(
        &self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Result<LookAhead, StoreError> {
        due_jobs::look_ahead(self, shards, until, limit, now).await
    }

    async fn fire(&self, node: NodeNo, batch: Vec<Fire>, now: Now) -> Result<Fired, StoreError> {
        fire::fire(self, node, batch, now).await
    }

    async fn fire_delayed(
        &self,
        node: NodeNo,
        batch: Vec<FireDelayed>,
        now: Now,
    ) -> Result<Fired, StoreError> {
        fire_delayed::fire_delayed(self, node, batch, now).await
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Result<(), StoreError> {
        supersede::supersede(self, batch, now).await
    }

    async fn postpone(&self, batch: &[Postpone]) -> Result<(), StoreError> {
        fire_delayed::postpone(self, batch).await
    }

    async fn find_closed_windows(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<Vec<ClosedAttempt>, StoreError> {
        claim_windows::find_closed_windows(self, shards, limit, now).await
    }

    async fn set_claim_windows(
        &self,
        batch: &[(AttemptKey, ClaimWindow)],
    ) -> Result<(), StoreError> {
        claim_windows::set_claim_windows(self, batch).await
    }
}
