//! Commands that create, change and control jobs, and queries that read jobs.

mod bulk_commands;
mod bulk_create;
mod conditions;
mod control;
mod create;
mod explain;
mod explain_past;
mod followers;
mod next_times;
mod publish;
mod queries;
mod secrets;
mod targets;
mod trigger;
mod update;
mod waiting;

use std::sync::{Arc, Mutex};

use evenkeel_core::JobId;
use evenkeel_core::aging::Aging;
use evenkeel_core::chance::Chance;
use evenkeel_store::Store;

use crate::{Balance, ExecutorCheck};
use create::Pending;

pub use bulk_commands::{
    BulkAction, BulkCommand, BulkOutcome, JobSelection, REFUSALS_LISTED_MAX, Refusal,
};
pub use bulk_create::{BULK_BATCH, Registration};
pub use conditions::{JobAtRisk, JobCondition, condition_of};
pub use control::{ControlCommand, DeletedJob};
pub use create::CreatedJob;
#[cfg(test)]
pub(crate) use create::{new_job, prepare_job};
pub use explain::JobExplanation;
pub use explain_past::{PastAnswer, PastTime, read_past_time};
pub use followers::FollowerUpdate;
pub(crate) use followers::change_command;
pub use next_times::{LOAD_COUNTED_MAX, NextTimes, SlotLoad};
pub(crate) use secrets::references;
pub use trigger::TriggerResult;
pub(crate) use trigger::{announce, no_time_left};
pub use update::Edit;
pub use waiting::WaitingRun;

/// Maximum number of tries to apply a change while other clients change the same job or target.
const TRIES: usize = 8;

#[derive(Clone)]
pub struct Jobs {
    pub(crate) store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    executors: Arc<dyn ExecutorCheck>,
    balance: Arc<Balance>,
    /// Create requests that wait for their transaction.
    pending: Arc<Mutex<Pending>>,
    pub(crate) aging: Aging,
}

impl Jobs {
    /// `executors` checks executor configurations, and `balance` chooses start times of jobs.
    pub fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        executors: Arc<dyn ExecutorCheck>,
        balance: Arc<Balance>,
    ) -> Self {
        let (pending, aging) = (Arc::default(), Aging::default());
        Self { store, chance, executors, balance, pending, aging }
    }

    #[must_use]
    pub fn with_aging(self, aging: Aging) -> Self {
        Self { aging, ..self }
    }

    pub fn executors(&self) -> &dyn ExecutorCheck {
        &*self.executors
    }

    pub(crate) fn new_id(&self, now: evenkeel_core::Timestamp) -> JobId {
        JobId::new(now, self.chance.ten_bytes())
    }
}
