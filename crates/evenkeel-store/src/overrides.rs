//! Store operations with which an operator overrides the outcome of an active run.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobId, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{AfterLoss, Finish, Hook, QueueEntry, Requeue, Scope, Then};

#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeOverride {
    /// The running attempt of the run, or any attempt of a waiting run.
    pub key: AttemptKey,
    /// State of the run when the operator decided to override its outcome.
    pub expected: LiveState,
    /// Time at which the operator decided to override the outcome.
    pub at: Timestamp,
    pub action: OverrideAction,
}

/// State of an active run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LiveState {
    /// The run waits for a worker, or for the due time of a retry or trigger.
    Waiting,
    Running {
        fence: Fence,
        started_at: Timestamp,
    },
}

/// A waiting or running attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LiveAttempt {
    pub key: AttemptKey,
    pub state: LiveState,
    /// Priority of this run, if it differs from the priority of the job.
    pub priority: Option<Priority>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OverrideResult {
    Done,
    /// The attempt is no longer in the expected state, or is already queued; nothing changed.
    Changed,
    /// The attempt cannot go back to the queue because its job was cancelled or deleted, its job
    /// was paused at or after the scheduled time, or the attempt was asked to stop. Nothing
    /// changed.
    Stopped,
    /// The attempt cannot go back to the queue because the given other job holds the deduplication
    /// key. Nothing changed.
    Duplicate(JobId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum OverrideAction {
    /// Finishes the run with this outcome.
    Ended {
        outcome: Outcome,
        error: Option<String>,
        /// How the job's schedule continues after the run; a retry is ignored.
        then: Then,
    },
    /// Puts the running attempt back into the queue.
    Queued(Box<QueueEntry>),
}

/// An overridden run has weight 0 in the job's average duration, because an operator decided when
/// it ended.
pub const OVERRIDE_ALPHA: f64 = 0.0;

impl OutcomeOverride {
    /// Returns the result to store under a new fence, if the action finishes the run.
    pub fn finish(&self, tenant: TenantNo, key: AttemptKey, fence: Fence) -> Option<Finish> {
        let OverrideAction::Ended { outcome, error, then } = &self.action else { return None };
        let started_at = match self.expected {
            LiveState::Waiting => self.at,
            LiveState::Running { started_at, .. } => started_at,
        };
        Some(Finish {
            outcome: *outcome,
            started_at,
            finished_at: self.at.max(started_at),
            then: then.without_retry(),
            // An operator ended the run, so its failure creates no dead letter and is not counted.
            hook: Hook::None,
            ..Finish::without_report((key, fence, tenant), error.clone(), self.at)
        })
    }

    /// Returns the requeue request, if the action puts a running attempt back into the queue.
    pub fn requeue(&self, tenant: TenantNo) -> Option<Requeue> {
        match (&self.action, self.expected) {
            (OverrideAction::Queued(ticket), LiveState::Running { fence, .. }) => Some(Requeue {
                key: self.key,
                fence,
                tenant,
                crashed: false,
                then: AfterLoss::Queue(QueueEntry::clone(ticket)),
            }),
            (OverrideAction::Queued(_), LiveState::Waiting) | (OverrideAction::Ended { .. }, _) => {
                None
            }
        }
    }
}

verbs! {
    trait OverrideStore {}

    /// Returns up to `limit` waiting and running attempts of a job of the tenant, oldest scheduled
    /// time first, as one consistent snapshot. Running attempts are searched among the newest
    /// 10,000 runs of the job and among the long-running attempts.
    read fn active_attempts(scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt>;

    /// Finishes a run of the tenant with the given outcome, or puts its running attempt back into
    /// the queue, if the run is still in the expected state.
    ///
    /// The attempt gets a new fence, so later reports of its worker are
    /// [rejected](crate::FinishResult::LeaseLost). In the transaction of the override, the node
    /// that runs the attempt gets a [message](crate::MessageKind::Ended) to stop it. The result is
    /// stored in the same way as by [`finish`](crate::AttemptStore::finish), but without a retry
    /// and a hook, and the duration does not change the job's average. If the run was waiting, the
    /// result is stored for an attempt that no worker ran.
    ///
    /// An attempt goes back to the queue in the same way as by
    /// [`requeue`](crate::AttemptStore::requeue). Nothing changes if [another job blocks the
    /// attempt](crate::DedupClaim::is_kept_out), or if `requeue` would record it as cancelled. The
    /// job of a requeued attempt takes its deduplication key. Requeueing a waiting attempt changes
    /// nothing, because it is already queued. The store also notifies the scheduler that the job of
    /// the run has changed.
    write fn override_outcome(scope: &Scope, settle: OutcomeOverride) -> OverrideResult;
}
