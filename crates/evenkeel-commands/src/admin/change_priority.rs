//! Sets the priority of a job, or raises it by an amount.

use evenkeel_core::JobId;
use evenkeel_core::order::Priority;
use evenkeel_store::{Applied, EventKind, Now, Scope, Signal};

use crate::jobs::priority_command;
use crate::{CommandError, Jobs};

/// Maximum number of tries to apply a change while other clients change the same job.
const TRIES: usize = 16;

impl Jobs {
    /// Sets the priority of a job and of its queued runs.
    pub async fn set_priority(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Priority,
    ) -> Result<(), CommandError> {
        self.change_priority(scope, id, |_| priority).await
    }

    /// Raises the priority of a job by `by`, up to the maximum of 100.
    pub async fn boost(&self, scope: &Scope, id: JobId, by: u8) -> Result<(), CommandError> {
        let raised = |known: Priority| {
            let number = known.get().saturating_add(by).min(Priority::MAX.get());
            Priority::try_from(number).unwrap_or(Priority::MAX)
        };
        self.change_priority(scope, id, raised).await
    }

    /// Computes the new priority from the stored priority, and applies it only if the stored
    /// priority is unchanged. Two simultaneous boosts therefore both count.
    async fn change_priority(
        &self,
        scope: &Scope,
        id: JobId,
        decide: impl Fn(Priority) -> Priority,
    ) -> Result<(), CommandError> {
        let mut job = self.get(scope, id).await?;
        for _ in 0..TRIES {
            let command = priority_command(&job, decide(job.definition.priority));
            match self.store.apply_commands(scope, vec![command], Now::Database).await?.pop() {
                Some(Applied::Done(_)) => {
                    self.announce(Signal::Jobs).await;
                    self.publish(scope, EventKind::JobUpdated, &[id]).await;
                    return Ok(());
                }
                Some(Applied::Stale(present)) => job = *present,
                other => return Err(CommandError::not_applied(other)),
            }
        }
        Err(CommandError::Stale { generation: job.generation })
    }
}
