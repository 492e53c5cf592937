//! Schedules: due jobs, firing, and claim windows.

pub(crate) mod claim_windows;
mod due_jobs;
pub(crate) mod fire;
pub(crate) mod fire_delayed;
mod supersede;

use async_trait::async_trait;
use evenkeel_core::{AttemptKey, JobNo, NodeNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    ClaimWindow, ClosedAttempt, DueJob, Fire, FireDelayed, Fired, LookAhead, Now, Postpone,
    ScheduleStore, StoreError, Supersede,
};

use crate::SqliteStore;
use crate::connection::Urgency::Batch;
use crate::connection::{Session, resolve};

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<DueJob>, StoreError> {
        self.engine_readers.read(move |db| due_jobs::load_due(db, shard, until, after, limit)).await
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Result<Vec<DueJob>, StoreError> {
        let jobs = jobs.to_vec();
        self.engine_readers.read(move |db| due_jobs::load_jobs(db, &jobs)).await
    }

    async fn look_ahead(
        &self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Result<LookAhead, StoreError> {
        let (shards, now) = (shards.to_vec(), resolve(now));
        // A reading connection checks first, because usually no job has changed and the writer is
        // not needed.
        let (changed, delayed) = self
            .engine_readers
            .read(move |db| {
                let changed = due_jobs::changed_jobs(db, &shards, limit)?;
                Ok((changed, fire_delayed::due_attempts(db, &shards, until, limit)?))
            })
            .await?;
        if changed.is_empty() {
            return Ok(LookAhead { now, changed: Vec::new(), delayed });
        }
        let rows = changed.len();
        let take = move |db: &mut Session| due_jobs::take_changed(db, &changed);
        let changed = self.writer.write(Batch, rows, take).await?;
        Ok(LookAhead { now, changed, delayed })
    }

    async fn fire(&self, node: NodeNo, batch: Vec<Fire>, now: Now) -> Result<Fired, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |db| fire::fire(db, node, &batch, resolve(now)))
            .await
    }

    async fn fire_delayed(
        &self,
        node: NodeNo,
        batch: Vec<FireDelayed>,
        now: Now,
    ) -> Result<Fired, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |db| {
                fire_delayed::fire_delayed(db, node, &batch, resolve(now))
            })
            .await
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer
            .write(Batch, batch.len() * 2, move |db| supersede::supersede(db, &batch, resolve(now)))
            .await
    }

    async fn postpone(&self, batch: &[Postpone]) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer.write(Batch, batch.len(), move |db| fire_delayed::postpone(db, &batch)).await
    }

    async fn find_closed_windows(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<Vec<ClosedAttempt>, StoreError> {
        let (shards, now) = (shards.to_vec(), resolve(now));
        self.engine_readers.read(move |db| claim_windows::closed(db, &shards, limit, now)).await
    }

    async fn set_claim_windows(
        &self,
        batch: &[(AttemptKey, ClaimWindow)],
    ) -> Result<(), StoreError> {
        let batch = batch.to_vec();
        self.writer.write(Batch, batch.len(), move |db| claim_windows::reopen(db, &batch)).await
    }
}
