//! What becomes of attempts that are taken from their node.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::Hook;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};

use crate::{Attachments, CheckpointDisposition, Finish, QueueEntry, Results, Then};

/// An attempt that is taken from the node that has it, without a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Requeue {
    /// Which one.
    pub key: AttemptKey,
    /// The fence of the owner it is taken from.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// Did its worker crash? Then it counts.
    pub crashed: bool,
    /// What becomes of it.
    pub then: AfterLoss,
}

/// What becomes of an attempt that is taken from its node. [`step`](evenkeel_core::attempt::step)
/// decides it for every attempt that a node lost.
#[derive(Clone, PartialEq, Debug)]
pub enum AfterLoss {
    /// It waits for another worker, at this place in the queue.
    Queue(QueueEntry),
    /// Its run has failed.
    Fail(LostEnd),
}

/// The failure of an attempt whose node lost it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEnd {
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended, or when its loss was noticed.
    pub finished_at: Timestamp,
    /// Why it failed.
    pub error: String,
    /// What follows for its job; no retry does.
    pub then: Then,
    /// What is done together with it.
    pub hook: Hook,
    /// Since when the attempt may have been over without the store's knowledge.
    pub unstored_since: Timestamp,
}

impl Requeue {
    /// The end that is stored, if the attempt is not to run again.
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
            attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Forget },
            judge: true,
            hook: *hook,
            unstored_since: Some(*unstored_since),
        })
    }
}
