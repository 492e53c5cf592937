//! A verb of people who know better how a run went than whoever runs it.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobId, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{
    AfterLoss, Attachments, CheckpointDisposition, Finish, Hook, QueueEntry, Requeue, Results,
    Scope, Then,
};

/// A run that somebody says the end of, or that is to be done once more.
#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeOverride {
    /// An attempt of it; if it waits, whichever.
    pub key: AttemptKey,
    /// Where it was when that was decided.
    pub expected: LiveState,
    /// When that was.
    pub at: Timestamp,
    /// What becomes of it.
    pub action: OverrideAction,
}

/// Where a run is that has not ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LiveState {
    /// It waits for a worker, for the time of its retry, or as a trigger.
    Waiting,
    /// Its attempt runs.
    Running {
        /// Under this fence.
        fence: Fence,
        /// Since then.
        started_at: Timestamp,
    },
}

/// An attempt that waits or runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LiveAttempt {
    /// Which one.
    pub key: AttemptKey,
    /// Where it is.
    pub state: LiveState,
    /// The priority that its run was given, whatever its job's is.
    pub priority: Option<Priority>,
}

/// What became of what somebody said about a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OverrideResult {
    /// It is so.
    Done,
    /// It was no longer where it was seen, or is so already; nothing was changed.
    Elsewhere,
    /// It cannot go back into the queue, since it goes no further: its job is over or was paused
    /// after its time, or somebody asked it to end. Nothing was changed.
    Stopped,
    /// It cannot go back into the queue: this other job has the key of its job by now. Nothing was
    /// changed.
    Duplicate(JobId),
}

/// What becomes of a run by somebody's word.
#[derive(Clone, PartialEq, Debug)]
pub enum OverrideAction {
    /// It is over, and ended like this.
    Ended {
        /// How.
        outcome: Outcome,
        /// What people read about it.
        error: Option<String>,
        /// What follows for its job; no retry does.
        then: Then,
    },
    /// The attempt that runs goes back into the queue.
    Queued(Box<QueueEntry>),
}

/// What is said about a run tells nothing about how long one takes: it has no weight in an average,
/// and makes none where there was none.
pub const OVERRIDE_ALPHA: f64 = 0.0;

impl OutcomeOverride {
    /// The end that is recorded under a new fence, if there is one.
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
            attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Forget },
            judge: true,
            unstored_since: None,
            // Somebody wanted it so: that is no failure to make a fuss about.
            hook: Hook::None,
        })
    }

    /// The way back into the queue, if it is to take that.
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
    /// What people say about runs.
    trait OverrideStore {}

    /// What waits and runs of a job, oldest time first, at most `limit`: all of it as it was at one
    /// moment. What runs is looked for among the latest ten thousand chains of the job, and among
    /// what has run for long. Nothing of a job that is not in the scope.
    read fn active_attempts(scope: &Scope, job: JobId, limit: u32) -> Vec<LiveAttempt>;

    /// Ends a run of the scope as somebody says, or puts the attempt that runs back into the queue,
    /// if it is still where it was seen.
    ///
    /// The attempt has a new fence from there on: whatever its worker says later is
    /// [refused](crate::FinishResult::LeaseLost). The node that ran it gets a
    /// [letter](crate::MessageKind::Ended) in the same transaction, so that the body is let go. The end is
    /// a [`finish`](crate::AttemptStore::finish) like any other, of an attempt that nobody ran if it
    /// waited, but no retry and no hook follows it, and its duration is not averaged.
    /// An attempt goes back as by [`requeue`](crate::AttemptStore::requeue), but one that would be
    /// recorded as ended instead is left alone, and so is one that
    /// [another job keeps out](crate::DedupClaim::is_kept_out); else its job takes its key. One that waits
    /// is in the queue already, so that nothing is changed. The scheduler is told as of a changed job.
    write fn override_outcome(scope: &Scope, settle: OutcomeOverride) -> OverrideResult;
}
