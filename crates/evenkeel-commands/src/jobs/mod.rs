//! Commands on jobs, and questions about them.

mod ask;
mod change;
mod conditions;
mod explain;
mod foresee;

use std::sync::Arc;

use evenkeel_core::JobId;
use evenkeel_core::chance::Chance;
use evenkeel_store::Store;

use crate::ExecutorCheck;

pub use change::{Accepted, Created};
pub use conditions::{JobCondition, condition_of};
pub use explain::JobExplanation;
pub use foresee::{Foreseen, LOAD_COUNTED_MAX, SlotLoad};

/// What people do with jobs.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    executors: Arc<dyn ExecutorCheck>,
}

impl Jobs {
    /// Commands on the jobs of `store`, which `executors` can run.
    pub fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        executors: Arc<dyn ExecutorCheck>,
    ) -> Self {
        Self { store, chance, executors }
    }

    /// The executors jobs may name.
    pub fn executors(&self) -> &dyn ExecutorCheck {
        &*self.executors
    }

    fn fresh_id(&self, now: evenkeel_core::Timestamp) -> JobId {
        JobId::new(now, self.chance.ten_bytes())
    }
}
