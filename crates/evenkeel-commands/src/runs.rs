//! Reads and cancels runs and their attempts.

use std::sync::Arc;

use evenkeel_core::{AttemptId, AttemptKey, JobId, RunIds};
use evenkeel_store::{
    Attempt, AttemptFilter, NewEvent, Now, Page, PageRequest, RunCancelled, Scope, Signal, Store,
};

use crate::{CommandError, Conflict};

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
    pub async fn get(&self, scope: &Scope, id: AttemptId) -> Result<Attempt, CommandError> {
        self.store.get_attempt(scope, self.run_ids.key(id)).await?.ok_or(CommandError::NotFound)
    }

    /// Cancels a run, given by its id or by the id of one of its attempts. Returns the attempt that
    /// was asked to stop, or that was withdrawn before it started.
    pub async fn cancel(&self, scope: &Scope, id: AttemptId) -> Result<RunCancelled, CommandError> {
        match self.store.cancel_run(scope, self.run_ids.key(id), Now::Database).await? {
            RunCancelled::NotFound => Err(CommandError::NotFound),
            RunCancelled::Over => Err(CommandError::Conflict(Conflict::RunEnded)),
            cancelled @ RunCancelled::Asked(_) => {
                // A lost signal does no harm, because nodes also poll.
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

    /// Lists the tenant's attempts and records of skipped runs, newest first.
    pub async fn list(
        &self,
        scope: &Scope,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, CommandError> {
        Ok(self.store.list_attempts(scope, AttemptFilter::default(), page).await?)
    }

    /// Lists the attempts of a job, which must exist.
    pub async fn list_of_job(
        &self,
        scope: &Scope,
        job: JobId,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, CommandError> {
        if self.store.get(scope, job).await?.is_none() {
            return Err(CommandError::NotFound);
        }
        let filter = AttemptFilter { job: Some(job) };
        Ok(self.store.list_attempts(scope, filter, page).await?)
    }
}
