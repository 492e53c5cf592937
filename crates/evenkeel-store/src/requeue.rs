//! Attempts that are taken from their node.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::Hook;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};

use crate::{Attachments, CheckpointDisposition, Finish, QueueEntry, Results, Then};

/// An attempt that is taken from its node without a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Requeue {
    pub key: AttemptKey,
    /// The fence of the current owner.
    pub fence: Fence,
    pub tenant: TenantNo,
    /// The worker crashed, which is counted.
    pub crashed: bool,
    pub then: AfterLoss,
}

/// What happens to the attempt. [`step`](evenkeel_core::attempt::step) decides it for attempts of
/// lost nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum AfterLoss {
    /// The attempt is queued for another worker.
    Queue(QueueEntry),
    /// The run fails.
    Fail(LostEnd),
}

/// The failure of an attempt whose node was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEnd {
    pub started_at: Timestamp,
    /// When the attempt ended, or when its loss was noticed.
    pub finished_at: Timestamp,
    pub error: String,
    /// What follows for the job. A retry is ignored.
    pub then: Then,
    /// What is stored in the same transaction.
    pub hook: Hook,
    /// Since when the attempt may have ended without the store's knowledge.
    pub unstored_since: Timestamp,
}

impl Requeue {
    /// Returns the end to store, if the attempt fails.
    pub fn finish(&self) -> Option<Finish> {
        let AfterLoss::Fail(end) = &self.then else { return None };
        let LostEnd { started_at, finished_at, error, then, hook, unstored_since } = end;
        let then = match then {
            Then::EndRun { .. } => *then,
            Then::Retry { .. } => Then::EndRun { stop_job: false, next_at: None },
        };
        Some(Finish {
            key: self.key,
            fence: self.fence,
            tenant: self.tenant,
            outcome: Outcome::Failed,
            started_at: *started_at,
            finished_at: *finished_at,
            results: Results { error: Some(error.clone()), ..Results::default() },
            then,
            priority: None,
            attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Delete },
            judge: true,
            hook: *hook,
            unstored_since: Some(*unstored_since),
        })
    }
}
