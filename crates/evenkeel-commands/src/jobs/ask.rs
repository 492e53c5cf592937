//! Questions: they change nothing.

use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{Job, JobFilter, Page, PageRequest, Scope};

use super::Jobs;
use crate::CommandError;

impl Jobs {
    /// The job with this id.
    pub async fn get(&self, scope: &Scope, id: JobId) -> Result<Job, CommandError> {
        self.store.get(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// The scope's jobs, oldest first.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        page: PageRequest<JobNo>,
    ) -> Result<Page<Job, JobNo>, CommandError> {
        Ok(self.store.list_jobs(scope, filter, page).await?)
    }
}
