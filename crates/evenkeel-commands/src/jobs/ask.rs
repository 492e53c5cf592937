//! Questions: they change nothing.

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Job, JobCursor, JobFilter, JobSort, Page, PageRequest, Scope};

use super::Jobs;
use crate::CommandError;

/// Jobs with the same name that a refusal lists at most.
const NAMESAKES_TOLD_MAX: u32 = 10;
/// So much of a name is repeated in a refusal.
const NAME_TOLD_CHARS: usize = 200;

fn shortened(name: &str) -> String {
    name.chars().take(NAME_TOLD_CHARS).collect()
}

impl Jobs {
    /// What the store's clock says.
    pub async fn now(&self) -> Result<Timestamp, CommandError> {
        Ok(self.store.now().await?)
    }

    /// The job that a user means by `text`: its id or its name. What reads as a UUID is an id.
    pub async fn id_meant(&self, scope: &Scope, text: &str) -> Result<JobId, CommandError> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let mut named = self.store.jobs_named(scope, text, NAMESAKES_TOLD_MAX).await?;
        match (named.pop(), named.is_empty()) {
            (Some(only), true) => Ok(only.id),
            (None, _) => Err(CommandError::NoJobNamed { name: shortened(text) }),
            (Some(last), false) => {
                named.push(last);
                let jobs = named.into_iter().map(|job| (job.id, job.configuration)).collect();
                Err(CommandError::AmbiguousName { name: shortened(text), jobs })
            }
        }
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
