//! Questions about runs and their attempts.

use std::sync::Arc;

use evenkeel_core::{JobId, RunId, RunKey};
use evenkeel_store::{Page, PageRequest, Run, RunFilter, Scope, Store};

use crate::CommandError;

/// What people ask about runs.
#[derive(Clone)]
pub struct Runs {
    store: Arc<dyn Store>,
}

impl Runs {
    /// Questions about the runs of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The attempt with this id, or the latest attempt of the run with this id.
    pub async fn get(&self, scope: &Scope, id: RunId) -> Result<Run, CommandError> {
        self.store.get_run(scope, id.key()).await?.ok_or(CommandError::NotFound)
    }

    /// The scope's attempts and skip records, newest first.
    pub async fn list(
        &self,
        scope: &Scope,
        page: PageRequest<RunKey>,
    ) -> Result<Page<Run, RunKey>, CommandError> {
        Ok(self.store.list_runs(scope, RunFilter::default(), page).await?)
    }

    /// Those of one job, which must exist.
    pub async fn list_of_job(
        &self,
        scope: &Scope,
        job: JobId,
        page: PageRequest<RunKey>,
    ) -> Result<Page<Run, RunKey>, CommandError> {
        if self.store.get(scope, job).await?.is_none() {
            return Err(CommandError::NotFound);
        }
        let filter = RunFilter { job: Some(job) };
        Ok(self.store.list_runs(scope, filter, page).await?)
    }
}
