//! The store's side of attempts: claiming, finishing, cancelling, listing, pruning.

mod cancel;
mod choose;
mod claim;
mod finish;
mod list;
mod override_outcome;
pub(crate) mod owned;
mod permits;
mod prune;
mod recent;
mod requeue;
mod runs;
mod waiting;

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::{AttemptKey, JobId, NodeNo};
use evenkeel_store::{
    Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, Claimed, Finish, FinishResult, Now,
    OwnedAttempt, Page, PageRequest, Prune, Pruned, QueuePosition, RECENT_JOBS_MAX,
    RECENT_RUNS_MAX, RecentRun, Requeue, RunAttempt, RunCancelled, Scope, StoreError,
    WaitingAttempt,
};

pub(crate) use self::cancel::{JobRuns, Withdrawn, close_runs, withdraw_pending};
pub(crate) use self::choose::Candidate;
use self::owned::{read_cancellation, read_owned};
pub(crate) use self::permits::{key_bytes, nth};
use self::waiting::{read_queued, waiting_ahead, waiting_of};
use crate::PostgresStore;
use crate::rows::{KeyColumns, column, key_columns, micros};

#[async_trait]
impl AttemptStore for PostgresStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Result<Claimed, StoreError> {
        let (contended, now) = (Arc::clone(&self.contended), micros(now.literal()));
        let args = claim::Args { claim: claim.clone(), now, contended };
        run!(self.hot, args, |connection, args| claim::claim(connection, args).await)
    }

    async fn finish(
        &self,
        node: NodeNo,
        batch: Vec<Finish>,
        alpha: f64,
    ) -> Result<Vec<FinishResult>, StoreError> {
        finish::finish(self, node, batch, alpha).await
    }

    async fn requeue(
        &self,
        node: NodeNo,
        batch: Vec<Requeue>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        requeue::requeue(self, node, batch, now).await
    }

    async fn find_owned(
        &self,
        node: NodeNo,
        keys: &[AttemptKey],
    ) -> Result<Vec<OwnedAttempt>, StoreError> {
        let keys = keys.iter().copied();
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = keys.collect();
        let params = params![node.0, job_no, scheduled_at, sequence, attempt];
        self.hot.rows(sql!("find_owned"), params, read_owned).await
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Result<Vec<OwnedAttempt>, StoreError> {
        self.hot.rows(sql!("owned"), params![node.0, i64::from(limit)], read_owned).await
    }

    async fn cancellations(&self, node: NodeNo) -> Result<Vec<Cancellation>, StoreError> {
        self.hot.rows(sql!("cancellations"), params![node.0], read_cancellation).await
    }

    async fn cancel_run(
        &self,
        scope: &Scope,
        key: AttemptKey,
        now: Now,
    ) -> Result<RunCancelled, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        transaction!(self.api, |connection| {
            cancel::cancel_run(connection, key, tenant, now).await
        })
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Result<Vec<WaitingAttempt>, StoreError> {
        let (tenant, now) = (scope.tenant.0, micros(now.literal()));
        run!(self.api, |connection| waiting_of(connection, job.0, tenant, ahead, now).await)
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Result<u32, StoreError> {
        let params = params![pools.to_vec(), i64::from(limit)];
        self.hot.row(sql!("waiting"), params, read_queued).await
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        position: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Result<u32, StoreError> {
        let (mut pools, now) = (pools.to_vec(), micros(now.literal()));
        pools.sort_unstable();
        pools.dedup();
        run!(self.hot, pools, |connection, pools| {
            waiting_ahead(connection, pools, position, limit, now).await
        })
    }

    async fn get_attempt(
        &self,
        scope: &Scope,
        key: AttemptKey,
    ) -> Result<Option<Attempt>, StoreError> {
        let (at, job, run, nth) = key_columns(key);
        let params = params![scope.tenant.0, at, job, run, nth];
        self.api.maybe_row(sql!("get_attempt"), params, list::read_details).await
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| match filter.job {
            None => list::of_tenant(connection, tenant, page).await,
            Some(job) => list::of_job(connection, tenant, job, page).await,
        })
    }

    async fn attempts_of_runs(
        &self,
        scope: &Scope,
        runs: &[AttemptKey],
        newest: u32,
    ) -> Result<Vec<RunAttempt>, StoreError> {
        let KeyColumns { job_no, scheduled_at, sequence, .. } = runs.iter().copied().collect();
        let params = params![scope.tenant.0, job_no, scheduled_at, sequence, i64::from(newest)];
        self.api.rows(sql!("attempts_of_runs"), params, runs::read_run_attempt).await
    }

    async fn recent_runs(
        &self,
        scope: &Scope,
        jobs: &[JobId],
        each: u32,
    ) -> Result<Vec<RecentRun>, StoreError> {
        let jobs = column(jobs.iter().take(RECENT_JOBS_MAX), |job| job.0);
        let each = each.min(RECENT_RUNS_MAX).cast_signed();
        let params = params![scope.tenant.0, jobs, each];
        self.api.rows(sql!("recent_runs"), params, recent::read_recent_run).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        transaction!(self.api, prune, |connection, prune| prune::prune(connection, prune).await)
    }
}
