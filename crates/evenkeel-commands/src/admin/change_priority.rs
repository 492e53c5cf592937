//! Sets the priority of a job, or raises it by an amount.

use evenkeel_core::JobId;
use evenkeel_core::order::Priority;
use evenkeel_store::{Applied, Scope};

use crate::{CommandError, Jobs, Result};

impl Jobs {
    /// Sets the priority of a job and of its queued runs.
    pub async fn set_priority(&self, scope: &Scope, id: JobId, priority: Priority) -> Result<()> {
        self.change_priority(scope, id, |_| priority).await
    }

    /// Raises the priority of a job by `by`, up to the maximum of 100.
    pub async fn boost(&self, scope: &Scope, id: JobId, by: u8) -> Result<()> {
        let raised = |known: Priority| {
            let number = known.get().saturating_add(by).min(Priority::MAX.get());
            Priority::try_from(number).unwrap_or(Priority::MAX)
        };
        self.change_priority(scope, id, raised).await
    }

    async fn change_priority(
        &self,
        scope: &Scope,
        id: JobId,
        decide: impl Fn(Priority) -> Priority,
    ) -> Result<()> {
        let job = self.get(scope, id).await?;
        match self.change_priorities(scope, vec![job], decide).await?.pop() {
            Some(Applied::Done(_)) => Ok(()),
            other => Err(CommandError::not_applied(other)),
        }
    }
}
