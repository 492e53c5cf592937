//! Commands that change existing jobs: pause, resume, cancel, retry, delete, update.

use evenkeel_core::status::{Command, NotAllowed};
use evenkeel_core::{AttemptKey, JobId, Timestamp};

use crate::{Job, JobChange};

/// The maximum number of commands in one batch.
pub const COMMANDS_MAX: usize = 1000;

#[derive(Clone, PartialEq, Debug)]
pub struct JobCommand {
    pub id: JobId,
    /// The command applies only if the job still has this generation.
    pub if_generation: Option<i32>,
    /// The command applies only if this many regular times of the job have been fired. A command
    /// that was computed from that number is refused if another time fires meanwhile.
    pub if_fired: Option<u64>,
    pub action: Action,
}

impl JobCommand {
    /// Pauses a job, whatever its generation.
    pub fn pause(id: JobId) -> Self {
        Self { id, if_generation: None, if_fired: None, action: Action::Pause }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The job does not fire until it is resumed. Its running attempts finish and are not retried.
    /// Its waiting attempts are recorded as cancelled. No attempt of the job is claimed until then,
    /// unless a user triggers a run.
    Pause,
    /// Pauses the job and shows a note for as long as it is paused.
    Suspend { note: String },
    Resume {
        /// The next regular time, from [`next_after_resume`](evenkeel_core::next_time::next_after_resume). The
        /// deadline promise counts from the resume on.
        next_at: Option<Timestamp>,
    },
    /// Ends the job for good. Its waiting attempts are recorded as cancelled; its running attempts
    /// are asked to end.
    Cancel,
    /// Runs the last run again, which must have failed, as a new run.
    Retry {
        /// Distinguishes runs of the same microsecond.
        n: u32,
        /// The next regular time of a job that its failures stopped. A job that has a next time
        /// keeps it.
        next_at: Option<Timestamp>,
    },
    /// Deletes the job but not its history, and frees its name. Its waiting attempts are recorded
    /// as cancelled; its running attempts are asked to end.
    Delete,
    /// Updates the job. A new definition also decides when and where the queued attempts of the job
    /// may be claimed.
    Change(Box<JobChange>),
}

impl Action {
    /// Returns the command as the job's state machine knows it.
    pub const fn command(&self) -> Command {
        match self {
            Self::Pause | Self::Suspend { .. } => Command::Pause,
            Self::Resume { .. } => Command::Resume,
            Self::Cancel => Command::Cancel,
            Self::Retry { .. } => Command::Retry,
            Self::Delete => Command::Delete,
            Self::Change(_) => Command::Update,
        }
    }

    /// Returns the note that the job shows while it is paused.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Suspend { note } => Some(note),
            _ => None,
        }
    }

    /// Returns the next regular time that the action sets.
    pub fn next_at(&self) -> Option<Timestamp> {
        match self {
            Self::Resume { next_at } | Self::Retry { next_at, .. } => *next_at,
            Self::Change(change) => change.next_at.flatten(),
            Self::Pause | Self::Suspend { .. } | Self::Cancel | Self::Delete => None,
        }
    }
}

/// The result of a command. If several refusals apply, the order is: state, generation, name,
/// deduplication key.
#[derive(Clone, PartialEq, Debug)]
pub enum Applied {
    Done(Box<CommandEffect>),
    /// The scope has no such job.
    NotFound,
    /// The state of the job does not allow the command.
    NotAllowed(NotAllowed),
    /// Nothing changed: the generation differs, or the new next time is not after the last fired
    /// time. Holds the job as it is.
    Stale(Box<Job>),
    /// Another job of the tenant has the name.
    NameTaken(JobId),
    /// This job of the tenant holds the deduplication key.
    Duplicate(JobId),
}

#[derive(Clone, PartialEq, Debug)]
pub struct CommandEffect {
    /// The job after the command; `None` if it was deleted.
    pub job: Option<Job>,
    /// The attempts that still run. If the job was cancelled or deleted, they were asked to end.
    pub running: Vec<AttemptKey>,
    /// The waiting attempts that were withdrawn. Their runs have ended.
    pub withdrawn: Vec<AttemptKey>,
    /// The run that a retry started.
    pub run: Option<AttemptKey>,
}
