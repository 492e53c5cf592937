//! Commands on jobs, and questions about them.

mod ask;
mod bulk;
mod change;
mod conditions;
mod control;
mod create;
mod explain;
mod follow;
mod foresee;
mod many;
mod targets;
mod tell;
mod update;
mod waits;

use std::sync::Arc;

use evenkeel_core::JobId;
use evenkeel_core::aging::Aging;
use evenkeel_core::chance::Chance;
use evenkeel_store::Store;

use crate::{Balance, ExecutorCheck};
use create::Creator;
#[cfg(test)]
pub(crate) use create::{new_job, settled};
pub(crate) use many::weighing;

pub use bulk::{BULK_BATCH, Registration};
pub use change::{Accepted, Asked, Created};
pub(crate) use change::{announce, no_time_left};
pub use conditions::{JobCondition, condition_of};
pub use control::{Ask, Forgotten};
pub use create::Made;
pub use explain::JobExplanation;
pub use follow::Led;
pub use foresee::{Foreseen, LOAD_COUNTED_MAX, SlotLoad};
pub use many::{BulkAction, BulkCommand, BulkOutcome, REFUSALS_TOLD_MAX, Refusal, Which};
pub use update::Edit;
pub use waits::Waits;

/// What people do with jobs.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    executors: Arc<dyn ExecutorCheck>,
    balance: Arc<Balance>,
    creator: Arc<Creator>,
    pub(crate) aging: Aging,
}

impl Jobs {
    /// Commands on the jobs of `store`, which `executors` can run and `balance` gives their times.
    pub fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        executors: Arc<dyn ExecutorCheck>,
        balance: Arc<Balance>,
    ) -> Self {
        let (same_store, same_chance) = (Arc::clone(&store), Arc::clone(&chance));
        let creator = Arc::new(Creator::new(same_store, same_chance, Arc::clone(&balance)));
        Self { store, chance, executors, balance, creator, aging: Aging::default() }
    }

    /// The same, if waiting counts as `aging` says.
    #[must_use]
    pub fn with_aging(self, aging: Aging) -> Self {
        Self { aging, ..self }
    }

    /// The executors jobs may name.
    pub fn executors(&self) -> &dyn ExecutorCheck {
        &*self.executors
    }

    pub(crate) fn fresh_id(&self, now: evenkeel_core::Timestamp) -> JobId {
        JobId::new(now, self.chance.ten_bytes())
    }
}
