//! Attempts that are taken away from their node.

use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::Hook;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};

use crate::{Finish, QueueEntry, Then};

/// An attempt that is taken away from its node before it has a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Requeue {
    pub key: AttemptKey,
    /// Fence of the node that currently owns the attempt.
    pub fence: Fence,
    pub tenant: TenantNo,
    /// True if the worker crashed; the store counts the crashes of an attempt.
    pub crashed: bool,
    pub then: AfterLoss,
}

/// What happens to an attempt that is taken away from its node. For an attempt of a lost node,
/// [`step`](evenkeel_core::attempt::step) decides whether the attempt is queued again or fails.
#[derive(Clone, PartialEq, Debug)]
pub enum AfterLoss {
    /// The attempt is queued for another worker.
    Queue(QueueEntry),
    /// The attempt and its run fail.
    Fail(LostEnd),
}

/// The failure of an attempt whose node was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostEnd {
    pub started_at: Timestamp,
    /// When the attempt finished, or when its loss was noticed.
    pub finished_at: Timestamp,
    pub error: String,
    /// How the job's schedule continues after the failure; a retry is ignored.
    pub then: Then,
    /// Dead letter or failure count that the store writes together with the failure.
    pub hook: Hook,
    /// Earliest time at which the attempt may have finished without the knowledge of the store.
    pub unstored_since: Timestamp,
}

impl Requeue {
    /// Returns the result to store, if the attempt fails.
    pub fn finish(&self) -> Option<Finish> {
        let AfterLoss::Fail(end) = &self.then else { return None };
        let attempt = (self.key, self.fence, self.tenant);
        Some(Finish {
            started_at: end.started_at,
            then: end.then.without_retry(),
            hook: end.hook,
            unstored_since: Some(end.unstored_since),
            ..Finish::without_report(attempt, Some(end.error.clone()), end.finished_at)
        })
    }
}
