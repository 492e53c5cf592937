//! What people ask of jobs that exist.

use evenkeel_core::status::{Command, NotAllowed};
use evenkeel_core::{AttemptKey, JobId, Timestamp};

use crate::{Job, JobChange};

/// Orders in one batch at most.
pub const COMMANDS_MAX: usize = 1000;

/// Something that a job is to do or to become.
#[derive(Clone, PartialEq, Debug)]
pub struct JobCommand {
    /// Which job.
    pub id: JobId,
    /// Only if this is still its generation.
    pub if_generation: Option<i32>,
    /// Only if so many of its regular times have been fired: what is decided by their number must
    /// not be overtaken by one.
    pub if_fired: Option<u64>,
    /// What.
    pub action: Action,
}

impl JobCommand {
    /// Pauses a job, whatever it is by now.
    pub fn pause(id: JobId) -> Self {
        Self { id, if_generation: None, if_fired: None, action: Action::Pause }
    }
}

/// What a job is to do or to become.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// It fires no more until it is resumed. What runs goes on to its end and is not tried again,
    /// what waits is recorded as cancelled; nothing of it is claimed from here on, unless somebody
    /// asks for a run.
    Pause,
    /// The same, with a note that people see as long as it lasts.
    Suspend {
        /// Why.
        note: String,
    },
    /// It goes on, from this next time on, if it has one; then its promise counts anew.
    Resume {
        /// Decided by [`next_after_resume`](evenkeel_core::next_time::next_after_resume).
        next_at: Option<Timestamp>,
    },
    /// It is over for good: what waits is recorded as cancelled, what runs is asked to end.
    Cancel,
    /// Its last run, which failed, is tried again now, as a run of its own.
    Retry {
        /// Tells runs of one microsecond apart.
        n: u32,
        /// A job that its failures have stopped goes on with this; one that has a next time
        /// keeps it.
        next_at: Option<Timestamp>,
    },
    /// It is gone, but for its history. What waits is recorded as cancelled, what runs is asked to
    /// end, its name is free.
    Delete,
    /// It is changed. With another definition, what waits of it in the queue may be claimed when
    /// and where that one says.
    Change(Box<JobChange>),
}

impl Action {
    /// What it is to the job's state.
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

    /// The note it leaves, as long as the job stands as it makes it stand.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Suspend { note } => Some(note),
            _ => None,
        }
    }

    /// The next time it brings.
    pub fn next_at(&self) -> Option<Timestamp> {
        match self {
            Self::Resume { next_at } | Self::Retry { next_at, .. } => *next_at,
            Self::Change(change) => change.next_at.flatten(),
            Self::Pause | Self::Suspend { .. } | Self::Cancel | Self::Delete => None,
        }
    }
}

/// What became of an order. A state that does not allow it is told before another generation, and
/// that before a name that is taken, and that before a key.
#[derive(Clone, PartialEq, Debug)]
pub enum Applied {
    /// It was done.
    Done(Box<CommandEffect>),
    /// There is no such job in the scope.
    NotFound,
    /// The job's state does not allow it.
    NotAllowed(NotAllowed),
    /// Its generation was another, or its next time would not be after its last fired one;
    /// nothing was changed. This is what it is like.
    Stale(Box<Job>),
    /// Another job of the tenant has the name.
    NameTaken(JobId),
    /// This job of the tenant has the key, and keeps it from what was asked.
    Duplicate(JobId),
}

/// What an order did.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandEffect {
    /// The job is like this now, unless it was deleted.
    pub job: Option<Job>,
    /// These attempts of it still run. If the job was cancelled or deleted, they were asked to end.
    pub running: Vec<AttemptKey>,
    /// These attempts of it waited and were withdrawn: their runs are over.
    pub withdrawn: Vec<AttemptKey>,
    /// The run that a retry began.
    pub run: Option<AttemptKey>,
}
