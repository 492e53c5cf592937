//! What can go wrong with a command.

use evenkeel_core::status::NotAllowed;
use evenkeel_core::{JobId, RunId};
use evenkeel_store::StoreError;

use crate::{Fault, RebalanceConflict};

/// A command that was not obeyed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such thing, or not for this tenant: nobody learns which.
    #[error("there is no such job, execution, dead letter, page or rebalance")]
    NotFound,
    /// No job of the tenant has the name.
    #[error("there is no job called {name:?}")]
    NoJobNamed {
        /// The name.
        name: String,
    },
    /// Several jobs of the tenant have the name.
    #[error("several jobs are called {name:?}; name one by its id: {}", listed(jobs))]
    AmbiguousName {
        /// The name.
        name: String,
        /// The first of them by configuration.
        jobs: Vec<(JobId, Option<String>)>,
    },
    /// The document is wrong.
    #[error("the document is not acceptable")]
    Invalid(Vec<Fault>),
    /// The document of a schedule is wrong.
    #[error("the schedule is not acceptable")]
    InvalidSchedule(Vec<Fault>),
    /// A page begins further on than anybody looks for it.
    #[error(
        "there are too many jobs to leave out so many of those that fit: leave the offset out and \
         follow next_cursor from the first page on"
    )]
    TooFar,
    /// Another job of the tenant has the name and the configuration.
    #[error("the job {id} has this name and configuration already")]
    NameTaken {
        /// Which one.
        id: JobId,
    },
    /// A job of the tenant, maybe this one, has the key, and keeps it from what was asked.
    #[error(
        "the job {id} has the same dedup_key and is in the way; wait until it is done, or give this \
         one another key or dedup_scope"
    )]
    Duplicate {
        /// Which one.
        id: JobId,
    },
    /// What goes on does not allow it.
    #[error("{0}")]
    Conflict(Conflict),
    /// A rebalance can't be begun, stopped or taken back.
    #[error("{0}")]
    Rebalance(RebalanceConflict),
    /// The job is in a state that does not allow it.
    #[error("{0}")]
    NotAllowed(NotAllowed),
    /// The job is no longer what it was to be.
    #[error("the job was changed meanwhile: its generation is {generation}; read it again")]
    Stale {
        /// The one it has.
        generation: i32,
    },
    /// Another target has the number or the source's id.
    #[error("the target {number} has this number or source_id already")]
    TargetTaken {
        /// Which one.
        number: i64,
        /// What it has.
        field: &'static str,
    },
    /// Jobs name the target.
    #[error(
        "jobs name this target ({jobs}); delete them, give them another, or say force=true to leave \
         them without one"
    )]
    TargetInUse {
        /// So many.
        jobs: u64,
    },
    /// The target is no longer what it was to be.
    #[error("the target was changed meanwhile: its generation is {generation}; read it again")]
    TargetStale {
        /// The one it has.
        generation: i32,
    },
    /// The document of a target is wrong.
    #[error("the target is not acceptable")]
    InvalidTarget(Vec<Fault>),
    /// There is no such target, or not for this tenant.
    #[error("there is no such target")]
    NoTarget,
    /// The token is not one of this attempt.
    #[error("the token is not the one that came with this attempt's call")]
    BadAttemptToken,
    /// There was no time left for it.
    #[error("there was no time left for it, and nothing was done; send it again")]
    OutOfTime,
    /// The store failed. Whether the command took effect is unknown if it did not answer.
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
    /// The same in a command whose earlier steps took effect, if they did: then it must not claim
    /// that nothing was changed.
    #[must_use]
    pub(crate) fn after(self, is_changed: bool) -> Self {
        match self {
            Self::Store(error) if is_changed => Self::Store(error.after_changes()),
            other => other,
        }
    }
}

/// Why a job does not allow what was asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Conflict {
    /// A run of it goes on.
    #[error(
        "a run of this job is still going on and its overlap policy allows no other; wait for its \
         end, or create the job with \"overlap\": \"allow\""
    )]
    Busy,
    /// The attempt has ended.
    #[error(
        "this attempt does not run any more: it has ended, or went back into the queue and will be \
         asked for again; there is nothing to do"
    )]
    NotRunning,
    /// Another worker runs the attempt.
    #[error(
        "this attempt was taken over and its work was asked for again; whoever got the newer call \
         reports it"
    )]
    TakenOver,
    /// The letter was taken up before.
    #[error(
        "this dead letter was taken up before: it became run {run}; if that dies as well, it has a \
         letter of its own"
    )]
    Redriven {
        /// The run that it became.
        run: RunId,
    },
    /// The job of the letter was deleted.
    #[error("the job of this dead letter was deleted: nothing can run again; delete the letter")]
    JobGone,
    /// The run has ended.
    #[error("this run has ended; there is nothing to cancel")]
    Over,
    /// The run cannot go back into the queue.
    #[error(
        "this run goes no further, so it cannot go back into the queue: its job is paused or cancelled, \
         or the run was asked to end; resume the job first, or set it to success or failed"
    )]
    GoesNoFurther,
    /// The job's time has come, and there is no run of it yet.
    #[error(
        "the time of this job has come, and no node of the cluster is alive to begin a run of it: there \
         is none that could be said to have ended; try again when one is"
    )]
    NobodyFires,
    /// The latest run of the job cannot be said to be there.
    #[error(
        "the status of this job is {is}: it cannot be set to {wanted}; only a worker makes a job \
         crawling, and only what waits or runs can be said to have ended"
    )]
    NotSo {
        /// What it is.
        is: &'static str,
        /// What it was to be.
        wanted: &'static str,
    },
}
