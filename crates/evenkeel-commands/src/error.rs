//! Errors of commands.

use evenkeel_core::status::NotAllowed;
use evenkeel_core::{JobId, RunId};
use evenkeel_store::{Applied, StoreError};

use crate::{Fault, RebalanceConflict};

pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The object does not exist or belongs to another tenant; the caller cannot tell which.
    #[error("there is no such job, execution, dead letter, page or rebalance")]
    NotFound,
    #[error("there is no job called {name:?}")]
    NoJobNamed { name: String },
    #[error("several jobs are called {name:?}; name one by its id: {}", listed(jobs))]
    AmbiguousName {
        name: String,
        /// The first jobs with this name, each with its field `configuration`.
        jobs: Vec<(JobId, Option<String>)>,
    },
    #[error("the document is not acceptable")]
    Invalid(Vec<Fault>),
    #[error("a parameter is not acceptable")]
    InvalidParameter(Vec<Fault>),
    #[error("the schedule is not acceptable")]
    InvalidSchedule(Vec<Fault>),
    /// The offset is larger than the number of jobs that one request for a filtered list reads.
    #[error(
        "offset is too large for a filtered list (limit 10,000 jobs); leave it out and follow \
         next_cursor from the first page on"
    )]
    OffsetTooLarge,
    #[error("the job {id} already has this name and configuration")]
    NameTaken { id: JobId },
    /// A job of the tenant, perhaps the job of the command itself, holds the same deduplication
    /// key.
    #[error(
        "the job {id} holds the same dedup_key; wait until it has ended, or choose another dedup_key \
         or dedup_scope"
    )]
    Duplicate { id: JobId },
    /// The present state of the run does not allow the command.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    Rebalance(#[from] RebalanceConflict),
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The job has another generation than the client expected.
    #[error("the job has changed: its generation is now {generation}; read it again")]
    Stale {
        /// Present generation of the job.
        generation: i32,
    },
    #[error("the target {number} already has this number or source_id")]
    TargetTaken {
        number: i64,
        /// The field with the conflict: `number` or `source_id`.
        field: &'static str,
    },
    #[error(
        "jobs refer to this target ({jobs}); delete them, give them another target, or send \
         force=true to leave them without a target"
    )]
    TargetInUse { jobs: u64 },
    #[error("the target has changed: its generation is now {generation}; read it again")]
    TargetStale { generation: i32 },
    #[error("the target is not acceptable")]
    InvalidTarget(Vec<Fault>),
    #[error("there is no such target")]
    NoTarget,
    #[error("the token does not belong to this attempt; send the token of the call")]
    BadAttemptToken,
    /// The time limit of a bulk request passed before this job was handled.
    #[error(
        "the time limit of the request passed before this job, which is unchanged; send it again"
    )]
    OutOfTime,
    /// The store failed. If the store did not answer, it is unknown whether the command took
    /// effect.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

fn listed(jobs: &[(JobId, Option<String>)]) -> String {
    let one = |(id, configuration): &(JobId, Option<String>)| match configuration {
        Some(configuration) => format!("{id} (configuration {configuration:?})"),
        None => format!("{id} (no configuration)"),
    };
    jobs.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl CommandError {
    pub(crate) fn not_applied(result: Option<Applied>) -> Self {
        match result {
            Some(Applied::NotAllowed(refusal)) => Self::NotAllowed(refusal),
            Some(Applied::Stale(job)) => Self::Stale { generation: job.generation },
            Some(Applied::NameTaken(id)) => Self::NameTaken { id },
            Some(Applied::Duplicate(id)) => Self::Duplicate { id },
            Some(Applied::NotFound | Applied::Done(_)) | None => Self::NotFound,
        }
    }

    /// Adjusts a store error if earlier steps of the command took effect, so that the error does
    /// not claim that nothing was changed.
    #[must_use]
    pub(crate) fn after(self, is_changed: bool) -> Self {
        match self {
            Self::Store(error) if is_changed => Self::Store(error.after_changes()),
            other => other,
        }
    }
}

/// Why the state of a run does not allow a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Conflict {
    #[error(
        "a run of this job is active and its overlap policy allows no other; wait for its end, or \
         set \"overlap\": \"allow\""
    )]
    Busy,
    #[error(
        "this attempt is no longer running: it has ended, or it was requeued and will be called \
         again; there is nothing to do"
    )]
    NotRunning,
    #[error(
        "this attempt was taken over by a newer call; the receiver of that call reports the outcome"
    )]
    TakenOver,
    #[error(
        "this dead letter was already redriven as run {run}; if that run fails for good, it gets a \
         dead letter of its own"
    )]
    Redriven { run: RunId },
    #[error(
        "the job of this dead letter was deleted, so it cannot run again; delete the dead letter"
    )]
    JobDeleted,
    #[error("this run has ended; there is nothing to cancel")]
    RunEnded,
    #[error(
        "this run cannot be requeued: its job is paused or cancelled, or the run was cancelled; resume \
         the job first, or set the status to success or failed"
    )]
    CannotRequeue,
    /// The job is due, but its run was not created yet.
    #[error(
        "this job is due, but no node is alive to start its run, so there is no run to set a status for; \
         try again when a node is up"
    )]
    NoLiveNode,
    #[error(
        "the status of this job is {is} and cannot be set to {wanted}: only a worker makes a job \
         crawling, and only a queued or running job can be set to success or failed"
    )]
    WrongStatus {
        /// Present status of the run.
        is: &'static str,
        /// Requested status of the run.
        wanted: &'static str,
    },
}
