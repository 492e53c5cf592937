//! Questions: they change nothing.

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Job, JobCursor, JobFilter, JobSort, Page, PageRequest, Scope};

use super::Jobs;
use crate::CommandError;

impl Jobs {
    /// What the store's clock says.
    pub async fn now(&self) -> Result<Timestamp, CommandError> {
        Ok(self.store.now().await?)
    }

    /// The job with this id.
    pub async fn get(&self, scope: &Scope, id: JobId) -> Result<Job, CommandError> {
        self.store.get(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// The job with this id, and what the store's clock said then.
    pub async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<(Job, Timestamp), CommandError> {
        self.store.get_with_now(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// The scope's jobs.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, CommandError> {
        Ok(self.store.list_jobs(scope, filter, sort, page).await?)
    }
}
