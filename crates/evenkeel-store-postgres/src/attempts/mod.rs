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
mod requeue;
mod waiting;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::{AttemptKey, JobId, NodeNo};
use evenkeel_store::{
    Attempt, AttemptFilter, AttemptStore, Cancellation, Claim, Claimed, Finish, FinishResult, Now,
    OwnedAttempt, Page, PageRequest, Prune, Pruned, QueuePosition, Requeue, RunCancelled, Scope,
    StoreError, WaitingAttempt,
};

pub(crate) use self::cancel::{JobRuns, Withdrawn, close_runs, withdraw_pending};
pub(crate) use self::choose::Candidate;
pub(crate) use self::permits::{key_bytes, nth};
use crate::PostgresStore;

#[async_trait]
impl AttemptStore for PostgresStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Result<Claimed, StoreError> {
        claim::claim(self, claim, now).await
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
        owned::find_owned(self, node, keys).await
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Result<Vec<OwnedAttempt>, StoreError> {
        owned::owned(self, node, limit).await
    }

    async fn cancellations(&self, node: NodeNo) -> Result<Vec<Cancellation>, StoreError> {
        owned::cancellations(self, node).await
    }

    async fn cancel_run(
        &self,
        scope: &Scope,
        key: AttemptKey,
        now: Now,
    ) -> Result<RunCancelled, StoreError> {
        cancel::cancel_run(self, scope, key, now).await
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Result<Vec<WaitingAttempt>, StoreError> {
        waiting::waiting_of(self, scope, job, ahead, now).await
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Result<u32, StoreError> {
        waiting::waiting(self, pools, limit).await
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        position: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Result<u32, StoreError> {
        waiting::waiting_ahead(self, pools, position, limit, now).await
    }

    async fn get_attempt(
        &self,
        scope: &Scope,
        key: AttemptKey,
    ) -> Result<Option<Attempt>, StoreError> {
        list::get_attempt(self, scope, key).await
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, StoreError> {
        list::list_runs(self, scope, filter, page).await
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        prune::prune(self, prune).await
    }
}
