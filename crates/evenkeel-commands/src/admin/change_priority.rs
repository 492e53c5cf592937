//! Another priority for a job, also one that depends on what it has.

use evenkeel_core::JobId;
use evenkeel_core::order::Priority;
use evenkeel_store::{Applied, EventKind, Now, Scope, Signal};

use crate::jobs::weighing;
use crate::{CommandError, Jobs};

/// So often it is decided anew because something else changed the job.
const TRIES: usize = 16;

impl Jobs {
    /// Gives a job another priority; what waits of it has that, too.
    pub async fn set_priority(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Priority,
    ) -> Result<(), CommandError> {
        self.reweigh(scope, id, |_| priority).await
    }

    /// Raises the priority of a job, as far as that goes.
    pub async fn boost(&self, scope: &Scope, id: JobId, by: u8) -> Result<(), CommandError> {
        let raised = |known: Priority| {
            let number = known.get().saturating_add(by).min(Priority::MAX.get());
            Priority::try_from(number).unwrap_or(Priority::MAX)
        };
        self.reweigh(scope, id, raised).await
    }

    /// Decides on what the job is, and holds for that alone: of two boosts at once both count.
    async fn reweigh(
        &self,
        scope: &Scope,
        id: JobId,
        decide: impl Fn(Priority) -> Priority,
    ) -> Result<(), CommandError> {
        let mut job = self.get(scope, id).await?;
        for _ in 0..TRIES {
            let order = weighing(&job, decide(job.definition.priority));
            match self.store.apply_commands(scope, vec![order], Now::Database).await?.pop() {
                Some(Applied::Done(_)) => {
                    self.announce(Signal::Jobs).await;
                    self.tell(scope, EventKind::JobUpdated, &[id]).await;
                    return Ok(());
                }
                Some(Applied::Stale(present)) => job = *present,
                Some(Applied::NotAllowed(refusal)) => {
                    return Err(CommandError::NotAllowed(refusal));
                }
                Some(Applied::NameTaken(id)) => return Err(CommandError::NameTaken { id }),
                Some(Applied::Duplicate(id)) => return Err(CommandError::Duplicate { id }),
                Some(Applied::NotFound) | None => return Err(CommandError::NotFound),
            }
        }
        Err(CommandError::Stale { generation: job.generation })
    }
}
