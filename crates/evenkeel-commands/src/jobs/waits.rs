//! How soon a run that waits will be taken.

use evenkeel_core::Timestamp;
use evenkeel_core::order::Priority;
use evenkeel_core::run::RunStatus;
use evenkeel_store::{Run, Scope, WaitsFor};

use super::Jobs;
use crate::CommandError;

/// What a run that waits has to show for itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Waits {
    /// Its own priority, or its job's.
    pub priority: Priority,
    /// What its waiting has made of that.
    pub effective_priority: Priority,
    /// Since when it waits for a worker; none if its time has not come.
    pub since: Option<Timestamp>,
}

impl Jobs {
    /// How soon a run will be taken; nothing if it does not wait.
    pub async fn waits(&self, scope: &Scope, run: &Run) -> Result<Option<Waits>, CommandError> {
        if run.status != RunStatus::Pending {
            return Ok(None);
        }
        let waiting = self.store.waiting_of(scope, run.job).await?;
        let Some(waiting) = waiting.into_iter().find(|waiting| waiting.key == run.key) else {
            return Ok(None);
        };
        let Some((job, now)) = self.store.get_with_now(scope, run.job).await? else {
            return Ok(None);
        };
        let priority = waiting.priority.unwrap_or(job.definition.priority);
        let since = match waiting.waits_for {
            WaitsFor::Time(_) => None,
            WaitsFor::Worker { since, .. } | WaitsFor::Place { since, .. } => Some(since),
        };
        let effective = |since| self.aging.effective(priority, since, now);
        let effective_priority = since.map_or(priority, effective);
        Ok(Some(Waits { priority, effective_priority, since }))
    }
}
