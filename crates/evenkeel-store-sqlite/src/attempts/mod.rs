//! Attempts: claiming, finishing, cancelling, listing and pruning them.

pub(crate) mod cancel;
pub(crate) mod choose;
mod claim;
mod finish;
pub(crate) mod list;
mod override_outcome;
pub(crate) mod owned;
mod permits;
mod prune;
mod recent;
mod requeue;
mod runs;
mod waiting;

use async_trait::async_trait;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::{AttemptKey, JobId, NodeNo};
use evenkeel_store::{
    Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, Claimed, Finish, FinishResult, Now,
    OwnedAttempt, Page, PageRequest, Prune, Pruned, QueuePosition, RECENT_JOBS_MAX, RecentRun,
    Requeue, RunAttempt, RunCancelled, Scope, StoreError, WaitingAttempt,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command, End};
use crate::connection::resolve;

#[async_trait]
impl AttemptStore for SqliteStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Result<Claimed, StoreError> {
        let claim = claim.clone();
        self.writer
            .write(Batch, claim.capacity, move |db| claim::claim(db, &claim, resolve(now)))
            .await
    }

    async fn finish(
        &self,
        node: NodeNo,
        batch: Vec<Finish>,
        alpha: f64,
    ) -> Result<Vec<FinishResult>, StoreError> {
        let rows = batch.iter().map(finish::rows).sum();
        self.writer.write(End, rows, move |db| finish::finish(db, node, &batch, alpha)).await
    }

    async fn requeue(
        &self,
        node: NodeNo,
        batch: Vec<Requeue>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        self.writer
            .write(Batch, batch.len(), move |db| requeue::requeue(db, node, &batch, resolve(now)))
            .await
    }

    async fn find_owned(
        &self,
        node: NodeNo,
        keys: &[AttemptKey],
    ) -> Result<Vec<OwnedAttempt>, StoreError> {
        let keys = keys.to_vec();
        self.engine_readers.read(move |db| owned::find(db, node, &keys)).await
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Result<Vec<OwnedAttempt>, StoreError> {
        self.engine_readers.read(move |db| owned::all(db, node, limit)).await
    }

    async fn cancellations(&self, node: NodeNo) -> Result<Vec<Cancellation>, StoreError> {
        self.writer.write(Command, 1, move |db| owned::cancellations(db, node)).await
    }

    async fn cancel_run(
        &self,
        scope: &Scope,
        key: AttemptKey,
        now: Now,
    ) -> Result<RunCancelled, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 2, move |db| cancel::cancel_run(db, tenant, key, resolve(now)))
            .await
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Result<Vec<WaitingAttempt>, StoreError> {
        let level = ahead.map(|aging| aging.risen(Rise(0), resolve(now)));
        let tenant = scope.tenant;
        self.readers.read(move |db| waiting::waiting_of(db, tenant, job, level)).await
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Result<u32, StoreError> {
        let pools = pools.to_vec();
        self.engine_readers.read(move |db| owned::waiting(db, &pools, limit)).await
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        position: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Result<u32, StoreError> {
        let (pools, now) = (pools.to_vec(), resolve(now));
        let ahead = move |db: &Connection| choose::waiting_ahead(db, &pools, position, limit, now);
        self.engine_readers.read(ahead).await
    }

    async fn get_attempt(
        &self,
        scope: &Scope,
        key: AttemptKey,
    ) -> Result<Option<Attempt>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list::get(db, tenant, key)).await
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, StoreError> {
        let tenant = scope.tenant;
        self.readers
            .read(move |db| match filter.job {
                Some(job) => list::of_job(db, tenant, job, page),
                None => list::of_all(db, tenant, page),
            })
            .await
    }

    async fn attempts_of_runs(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        newest: u32,
    ) -> Result<Vec<RunAttempt>, StoreError> {
        let (tenant, runs) = (scope.tenant, runs.to_vec());
        self.readers.read(move |db| runs::attempts_of(db, tenant, &runs, newest)).await
    }

    async fn recent_runs(
        &self,
        scope: &Scope,
        jobs: &[JobId],
        each: u32,
    ) -> Result<Vec<RecentRun>, StoreError> {
        let tenant = scope.tenant;
        let jobs: Vec<JobId> = jobs.iter().take(RECENT_JOBS_MAX).copied().collect();
        self.readers.read(move |db| recent::recent_runs(db, tenant, &jobs, each)).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        let step = self.engine_readers.read(move |db| prune::find(db, prune)).await?;
        let pruned = step.pruned(0);
        if step.rows() == 0 {
            return Ok(pruned);
        }
        let rows = step.rows();
        let deleted = self.writer.write(Batch, rows, move |db| prune::delete(db, &step)).await?;
        Ok(Pruned { deleted, ..pruned })
    }
}
