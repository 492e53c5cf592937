//! Verbs that let an operator override the outcome of an active run.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobId, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{
    AfterLoss, Attachments, CheckpointDisposition, Finish, Hook, QueueEntry, Requeue, Results,
    Scope, Then,
};

#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeOverride {
    /// An attempt of the run. If the run waits, any of its attempts.
    pub key: AttemptKey,
    /// The state on which the override was decided.
    pub expected: LiveState,
    /// When the override was decided.
    pub at: Timestamp,
    pub action: OverrideAction,
}

/// The state of an active run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LiveState {
    /// The run waits for a worker, for the time of its retry, or as a trigger.
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
    /// The priority of this run, if it differs from the job's.
    pub priority: Option<Priority>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OverrideResult {
    Done,
    /// The attempt is no longer in the expected state, or is queued already; nothing changed.
    Changed,
    /// The attempt cannot go back to the queue: its job was cancelled or deleted, or paused after
    /// its time, or the attempt was asked to end. Nothing changed.
    Stopped,
    /// The attempt cannot go back to the queue: this other job holds the deduplication key. Nothing
    /// changed.
    Duplicate(JobId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum OverrideAction {
    /// Ends the run with this outcome.
    Ended {
        outcome: Outcome,
        error: Option<String>,
        /// What follows for the job. A retry is ignored.
        then: Then,
    },
    /// Puts the running attempt back into the queue.
    Queued(Box<QueueEntry>),
}

/// The weight of an overridden run in the average duration: none, since its end says nothing about
/// how long runs take.
pub const OVERRIDE_ALPHA: f64 = 0.0;

impl OutcomeOverride {
    /// Returns the end to record under a new fence, if the action ends the run.
    pub fn finish(&self, tenant: TenantNo, key: AttemptKey, fence: Fence) -> Option<Finish> {
        let OverrideAction::Ended { outcome, error, then } = &self.action else { return None };
        let then = match then {
            Then::EndRun { .. } => *then,
            Then::Retry { .. } => Then::EndRun { stop_job: false, next_at: None },
        };
        let started_at = match self.expected {
            LiveState::Waiting => self.at,
            LiveState::Running { started_at, .. } => started_at,
        };
        Some(Finish {
            key,
            fence,
            tenant,
            outcome: *outcome,
            started_at,
            finished_at: self.at.max(started_at),
            results: Results { error: error.clone(), ..Results::default() },
            then,
            priority: None,
            attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Delete },
            judge: true,
            unstored_since: None,
            // An operator ended the run, so its failure has no consequences.
            hook: Hook::None,
        })
    }

    /// Returns the requeue, if the action puts a running attempt back.
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

    /// Returns up to `limit` waiting and running attempts of a job of the scope, oldest time first,
    /// all as of one moment. Running attempts are searched among the newest 10,000 runs of the job
    /// and among long attempts.
    read fn active_attempts(scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt>;

    /// Ends a run of the scope with the given outcome, or puts its running attempt back into the
    /// queue, if the run is still in the expected state.
    ///
    /// The attempt gets a new fence, so what its worker reports later is
    /// [refused](crate::FinishResult::LeaseLost). In the same transaction the node that ran it gets
    /// a [message](crate::MessageKind::Ended) to stop the body. The end is stored as by
    /// [`finish`](crate::AttemptStore::finish), but without retry and hook, and its duration is not
    /// averaged. If the run waited, the end is that of an attempt that no worker ran.
    ///
    /// An attempt goes back as by [`requeue`](crate::AttemptStore::requeue), with two exceptions:
    /// it is left alone if it would be recorded as ended, or if [another job keeps it
    /// out](crate::DedupClaim::is_kept_out). Otherwise its job takes the key. A waiting attempt is
    /// queued already, so nothing changes. The scheduler is notified as of a changed job.
    write fn override_outcome(scope: &Scope, settle: OutcomeOverride) -> OverrideResult;
}
