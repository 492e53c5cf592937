//! The seven states of a job, as people see them, and what may be done in each.

use serde::{Deserialize, Serialize};

use crate::run::Outcome;

/// What users see of a job.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Fired, not yet claimed.
    Pending,
    /// Waiting for its next time.
    Scheduled,
    /// An attempt runs.
    Running,
    /// Stopped until resumed.
    Paused,
    /// It will not run again, and its last run was good.
    Completed,
    /// It will not run again, and its last run was not good.
    Failed,
    /// Ended for good by somebody.
    Cancelled,
}

impl JobStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Scheduled,
        Self::Running,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a job's status is made from.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFacts {
    /// Somebody ended it.
    pub cancelled: bool,
    /// Somebody stopped it for a while.
    pub paused: bool,
    /// Chains that a worker has an attempt of.
    pub running: u32,
    /// Chains that are fired and not over.
    pub live: u32,
    /// Has it a next regular time?
    pub has_next: bool,
    /// How its last attempt ended.
    pub last_outcome: Option<Outcome>,
}

impl JobFacts {
    /// The status: what was done to it first, then what it does, then what it waits for, then how
    /// it ended.
    pub fn status(self) -> JobStatus {
        if self.cancelled {
            JobStatus::Cancelled
        } else if self.paused {
            JobStatus::Paused
        } else if self.running > 0 {
            JobStatus::Running
        } else if self.live > 0 {
            JobStatus::Pending
        } else if self.has_next {
            JobStatus::Scheduled
        } else {
            match self.last_outcome {
                None => JobStatus::Pending,
                Some(Outcome::Completed | Outcome::PartlyFailed) => JobStatus::Completed,
                Some(Outcome::Failed | Outcome::TimedOut) => JobStatus::Failed,
                Some(Outcome::Cancelled | Outcome::Superseded) => JobStatus::Cancelled,
            }
        }
    }
}

/// What people can ask of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Stop until resumed.
    Pause,
    /// Go on.
    Resume,
    /// End for good.
    Cancel,
    /// Try the last failed run again.
    Retry,
    /// Run now, beside the schedule.
    Trigger,
}

/// A command that the job's status does not allow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a job that is {} cannot be asked to {command:?}; it allows {:?}", status.as_str(), status.allowed())]
pub struct NotAllowed {
    /// What it is.
    pub status: JobStatus,
    /// What was asked.
    pub command: Command,
}

impl JobStatus {
    /// The commands this status allows.
    pub const fn allowed(self) -> &'static [Command] {
        use Command::{Cancel, Pause, Resume, Retry, Trigger};
        match self {
            Self::Pending | Self::Scheduled | Self::Running => &[Pause, Cancel, Retry, Trigger],
            Self::Paused => &[Resume, Cancel, Trigger],
            Self::Completed => &[Trigger],
            Self::Failed => &[Retry, Cancel, Trigger],
            Self::Cancelled => &[],
        }
    }

    /// Is the command allowed?
    pub fn check(self, command: Command) -> Result<(), NotAllowed> {
        if self.allowed().contains(&command) {
            Ok(())
        } else {
            Err(NotAllowed { status: self, command })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_to_a_job_hides_what_it_does() {
        let running = JobFacts { running: 1, live: 1, has_next: true, ..JobFacts::default() };
        assert_eq!(running.status(), JobStatus::Running);
        assert_eq!(JobFacts { paused: true, ..running }.status(), JobStatus::Paused);
        let both = JobFacts { paused: true, cancelled: true, ..running };
        assert_eq!(both.status(), JobStatus::Cancelled);
    }

    #[test]
    fn a_recurring_job_is_scheduled_again_after_a_failure() {
        let failed = JobFacts { last_outcome: Some(Outcome::Failed), ..JobFacts::default() };
        assert_eq!(failed.status(), JobStatus::Failed);
        assert_eq!(JobFacts { has_next: true, ..failed }.status(), JobStatus::Scheduled);
    }

    #[test]
    fn each_pair_of_status_and_command_has_its_answer() {
        use Command::{Cancel, Pause, Resume, Retry, Trigger};
        let allowed: Vec<String> = JobStatus::ALL
            .iter()
            .map(|status| {
                let row: String = [Pause, Resume, Cancel, Retry, Trigger]
                    .map(|command| if status.check(command).is_ok() { 'x' } else { '.' })
                    .iter()
                    .collect();
                format!("{} {row}", status.as_str())
            })
            .collect();
        assert_eq!(
            allowed,
            [
                "pending x.xxx",
                "scheduled x.xxx",
                "running x.xxx",
                "paused .xx.x",
                "completed ....x",
                "failed ..xxx",
                "cancelled .....",
            ]
        );
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        let refused = JobStatus::Completed.check(Command::Pause).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a job that is completed cannot be asked to Pause; it allows [Trigger]"
        );
    }
}
