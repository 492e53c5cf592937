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

use self::claim_windows::{read_closed, window_params};
use self::due_jobs::look_ahead;
use self::fire_delayed::{Args, fire_delayed, postpone_params};
use self::supersede::supersede;
use crate::PostgresStore;
use crate::rows::{column, due_job, micros, shards};

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<DueJob>, StoreError> {
        let after = after.map_or(i64::MIN, |job| job.0);
        let params = params![i16::from(shard.0), until.0, after, i64::from(limit)];
        self.hot.rows(sql!("load_due"), params, due_job).await
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Result<Vec<DueJob>, StoreError> {
        self.hot.rows(sql!("load_jobs"), params![column(jobs, |job| job.0)], due_job).await
    }

    async fn look_ahead(
        &self,
        of: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Result<LookAhead, StoreError> {
        let now = micros(now.literal());
        run!(self.hot, shards(of), |connection, shards| {
            look_ahead(connection, shards, until, limit, now).await
        })
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
        let args = Args { node: node.0, now: micros(now.literal()), batch };
        run!(self.hot, args, |connection, args| fire_delayed(connection, args).await)
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Result<(), StoreError> {
        let now = micros(now.literal());
        run!(self.hot, batch.to_vec(), |connection, batch| supersede(connection, batch, now).await)
    }

    async fn postpone(&self, batch: &[Postpone]) -> Result<(), StoreError> {
        self.hot.change(sql!("postpone"), postpone_params(batch)).await?;
        Ok(())
    }

    async fn find_closed_windows(
        &self,
        of: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<Vec<ClosedAttempt>, StoreError> {
        let params = params![micros(now.literal()), shards(of), i64::from(limit)];
        self.hot.rows(sql!("find_closed_windows"), params, read_closed).await
    }

    async fn set_claim_windows(
        &self,
        batch: &[(AttemptKey, ClaimWindow)],
    ) -> Result<(), StoreError> {
        self.hot.change(sql!("set_claim_windows"), window_params(batch)).await?;
        Ok(())
    }
}
