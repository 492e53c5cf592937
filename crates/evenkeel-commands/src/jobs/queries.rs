//! Reads jobs.

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Job, Scope};

use super::Jobs;
use crate::{CommandError, Result};

/// Maximum number of jobs that the error about an ambiguous name lists.
const AMBIGUOUS_LISTED_MAX: u32 = 10;
/// Maximum number of characters of a job name that an error message repeats.
const NAME_SHOWN_CHARS: usize = 200;

fn shortened(name: &str) -> String {
    name.chars().take(NAME_SHOWN_CHARS).collect()
}

impl Jobs {
    /// Resolves a job id or a job name to a job id. A text that is a UUID is always treated as an
    /// id.
    pub async fn resolve_id(&self, scope: &Scope, text: &str) -> Result<JobId> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let mut named = self.store.jobs_named(scope, text, AMBIGUOUS_LISTED_MAX).await?;
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

    pub async fn get(&self, scope: &Scope, id: JobId) -> Result<Job> {
        self.store.get(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// Returns a job, and the current time of the store's clock.
    pub async fn get_with_now(&self, scope: &Scope, id: JobId) -> Result<(Job, Timestamp)> {
        self.store.get_with_now(scope, id).await?.ok_or(CommandError::NotFound)
    }
}
