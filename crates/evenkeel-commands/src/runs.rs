//! Reads and cancels runs and their attempts.

use std::sync::Arc;

use evenkeel_core::{AttemptId, AttemptKey, JobId, RunIds};
use evenkeel_store::{
    Attempt, AttemptFilter, NewEvent, Now, Page, PageRequest, RunCancelled, Scope, Signal, Store,
};

use crate::{CommandError, Conflict, Result};

#[derive(Clone)]
pub struct Runs {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) run_ids: RunIds,
}

impl Runs {
    pub fn new(store: Arc<dyn Store>, run_ids: RunIds) -> Self {
        Self { store, run_ids }
    }

    /// Returns the attempt with this id, or the latest attempt of the run with this id.
    pub async fn get(&self, scope: &Scope, id: AttemptId) -> Result<Attempt> {
        self.store.get_attempt(scope, self.run_ids.key(id)).await?.ok_or(CommandError::NotFound)
    }

    /// Cancels a run, given by its id or by the id of one of its attempts. Returns the attempt that
    /// was asked to stop, or the attempt that was withdrawn before it started.
    pub async fn cancel(&self, scope: &Scope, id: AttemptId) -> Result<RunCancelled> {
        match self.store.cancel_run(scope, self.run_ids.key(id), Now::Database).await? {
            RunCancelled::NotFound => Err(CommandError::NotFound),
            RunCancelled::Over => Err(Conflict::RunEnded.into()),
            cancelled @ RunCancelled::Asked(_) => {
                // The signal about the cancelled run may be lost, because nodes also poll.
                let _ = self.store.announce(Signal::Cancel).await;
                Ok(cancelled)
            }
            RunCancelled::Withdrawn(key) => {
                if self.store.events().has_listeners()
                    && let Ok(now) = self.store.now().await
                {
                    self.store.events().emit([NewEvent::run_withdrawn(scope.tenant, key, now)]);
                }
                Ok(RunCancelled::Withdrawn(key))
            }
        }
    }
    /// Lists attempts and skip records of one job or of all jobs of the tenant, newest first.
    /// Returns an error if the given job does not exist.
    pub async fn list(
        &self,
        scope: &Scope,
        job: Option<JobId>,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>> {
        check_job(&*self.store, scope, job).await?;
        Ok(self.store.list_attempts(scope, AttemptFilter { job }, page).await?)
    }
}

/// Returns an error if the given job does not exist.
pub(crate) async fn check_job(store: &dyn Store, scope: &Scope, job: Option<JobId>) -> Result<()> {
    match job {
        Some(job) if store.get(scope, job).await?.is_none() => Err(CommandError::NotFound),
        _ => Ok(()),
    }
}
