//! Commands that change existing jobs: pause, resume, cancel, retry, delete, update.

use evenkeel_core::status::{Command, NotAllowed};
use evenkeel_core::{AttemptKey, JobId, Timestamp};

use crate::{Job, JobChange};

/// Maximum number of commands in one batch.
pub const COMMANDS_MAX: usize = 1000;

#[derive(Clone, PartialEq, Debug)]
pub struct JobCommand {
    pub id: JobId,
    /// Applies the command only if the job still has this generation.
    pub if_generation: Option<i32>,
    /// Applies the command only if exactly this many scheduled times of the job have been fired. A
    /// command that was computed from the number of fired times is rejected if the job fires before
    /// the command is applied.
    pub if_fired: Option<u64>,
    pub action: Action,
}

impl JobCommand {
    /// Returns a command that pauses the job, whatever its generation.
    pub fn pause(id: JobId) -> Self {
        Self { id, if_generation: None, if_fired: None, action: Action::Pause }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The job does not fire until it is resumed. Running attempts of the job finish, but are not
    /// retried. Waiting attempts of the job are recorded as cancelled. While the job is paused,
    /// only runs that a user triggers are claimed.
    Pause,
    /// Pauses the job, and stores a note that users see while the job is paused.
    Suspend { note: String },
    Resume {
        /// Next scheduled time, computed by
        /// [`next_after_resume`](evenkeel_core::next_time::next_after_resume). Deadlines that were
        /// missed before the resume are ignored.
        next_at: Option<Timestamp>,
    },
    /// Ends the job permanently. Waiting attempts of the job are recorded as cancelled, and its
    /// running attempts are asked to stop.
    Cancel,
    /// Repeats the job's last run, which must have failed, as a new run.
    Retry {
        /// Distinguishes runs that start in the same microsecond.
        n: u32,
        /// Next scheduled time for a job whose schedule ended after a failure. If the job still has
        /// a next scheduled time, `next_at` is ignored.
        next_at: Option<Timestamp>,
    },
    /// Deletes the job but keeps its history; another job may then have its name. Waiting attempts
    /// of the job are recorded as cancelled, and its running attempts are asked to stop.
    Delete,
    /// Updates the job. A new definition also changes when, and by which nodes, queued attempts of
    /// the job may be claimed.
    Change(Box<JobChange>),
}

impl Action {
    /// Returns the command of the job's state machine that matches this action.
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

    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Suspend { note } => Some(note),
            _ => None,
        }
    }

    pub fn next_at(&self) -> Option<Timestamp> {
        match self {
            Self::Resume { next_at } | Self::Retry { next_at, .. } => *next_at,
            Self::Change(change) => change.next_at.flatten(),
            Self::Pause | Self::Suspend { .. } | Self::Cancel | Self::Delete => None,
        }
    }
}

/// The result of a command. A store checks the command in this order and reports the first check
/// that fails: the job's state; its generation, number of fired times and last fired time; its
/// name; its deduplication key.
#[derive(Clone, PartialEq, Debug)]
pub enum Applied {
    Done(Box<CommandEffect>),
    NotFound,
    /// The state of the job does not allow the command.
    NotAllowed(NotAllowed),
    /// The job's generation or number of fired times is not the expected one, or its new scheduled
    /// time is not after its last fired time. Nothing changed; contains the stored job.
    Stale(Box<Job>),
    /// Contains the other job of the tenant that already has the requested name.
    NameTaken(JobId),
    /// Contains the other job of the tenant that holds the deduplication key.
    Duplicate(JobId),
}

#[derive(Clone, PartialEq, Debug)]
pub struct CommandEffect {
    /// The job after the command; `None` if the command deleted it.
    pub job: Option<Job>,
    /// Attempts that are still running. If the command cancelled or deleted the job, its running
    /// attempts were asked to stop.
    pub running: Vec<AttemptKey>,
    /// Waiting attempts that the command cancelled.
    pub withdrawn: Vec<AttemptKey>,
    /// The run that a retry command started.
    pub run: Option<AttemptKey>,
}
