//! The seven states of a job, as people see them, and what may be done in each.

use serde::{Deserialize, Serialize};

use crate::attempt::Outcome;

/// What users see of a job.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Its time has come, and no worker has claimed it yet.
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

/// Whether a job takes part.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum JobState {
    /// It fires.
    #[default]
    Active,
    /// It waits to be resumed.
    Paused,
    /// Somebody ended it for good.
    Cancelled,
    /// It is gone but for its history.
    Deleted,
}

impl JobState {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Cancelled, Self::Deleted];
}

/// What a job's status is made from, and what may be done with it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFacts {
    /// What was done to it.
    pub state: JobState,
    /// Chains that a worker has an attempt of.
    pub running: u32,
    /// Chains that are fired and not over.
    pub live: u32,
    /// Has it a next regular time?
    pub has_next: bool,
    /// Has that time come, so that only a worker is missing? A blackout that holds the job is not a
    /// missing worker: see [`Definition::next_start`](crate::Definition::next_start).
    pub is_due: bool,
    /// How its last attempt ended.
    pub last_outcome: Option<Outcome>,
}

impl JobFacts {
    /// The status: what was done to it first, then what it does, then what it waits for, then how
    /// it ended.
    pub fn status(self) -> JobStatus {
        match self.state {
            JobState::Cancelled | JobState::Deleted => JobStatus::Cancelled,
            JobState::Paused => JobStatus::Paused,
            JobState::Active if self.running > 0 => JobStatus::Running,
            JobState::Active if self.live > 0 || self.is_due => JobStatus::Pending,
            JobState::Active if self.has_next => JobStatus::Scheduled,
            JobState::Active => match self.last_outcome {
                None => JobStatus::Pending,
                Some(Outcome::Completed | Outcome::PartlyFailed) => JobStatus::Completed,
                Some(Outcome::Failed | Outcome::TimedOut) => JobStatus::Failed,
                Some(Outcome::Cancelled | Outcome::Superseded) => JobStatus::Cancelled,
            },
        }
    }
}

/// What people can ask of a job.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Stop until resumed.
    Pause,
    /// Go on.
    Resume,
    /// End for good.
    Cancel,
    /// Try the last run again, which failed.
    Retry,
    /// Run now, beside the schedule.
    Trigger,
    /// Be another.
    Update,
    /// Be gone.
    Delete,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pause,
        Self::Resume,
        Self::Cancel,
        Self::Retry,
        Self::Trigger,
        Self::Update,
        Self::Delete,
    ];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Trigger => "trigger",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// What a command does to a job that obeys it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// What it is afterwards.
    pub state: JobState,
    /// What waits of it, for a worker or for its time, is recorded as cancelled.
    pub withdraws: bool,
    /// What runs of it is asked to end.
    pub ends_running: bool,
    /// A run of its own begins.
    pub begins_run: bool,
}

/// A command that the job's state does not allow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.in_words())]
pub struct NotAllowed {
    /// What it is.
    pub status: JobStatus,
    /// What was asked.
    pub command: Command,
    /// What it would apply.
    pub allowed: Vec<Command>,
}

impl NotAllowed {
    fn in_words(&self) -> String {
        let (command, status) = (self.command.as_str(), self.status.as_str());
        let why = match (self.command, self.status) {
            (Command::Retry, JobStatus::Scheduled | JobStatus::Completed) => {
                " and its last run did not fail"
            }
            _ => "",
        };
        let allowed: Vec<_> = self.allowed.iter().map(|one| one.as_str()).collect();
        format!(
            "the job is {status}{why}: it does not allow {command}, only {}",
            allowed.join(", ")
        )
    }
}

impl JobFacts {
    /// What a command does to the job, if its state allows it: the one place where this is decided.
    pub fn apply(self, command: Command) -> Result<Effect, NotAllowed> {
        if !self.allows(command) {
            let allowed = Command::ALL.into_iter().filter(|other| self.allows(*other)).collect();
            return Err(NotAllowed { status: self.status(), command, allowed });
        }
        let stays =
            Effect { state: self.state, withdraws: false, ends_running: false, begins_run: false };
        Ok(match command {
            Command::Pause => Effect { state: JobState::Paused, withdraws: true, ..stays },
            Command::Resume => Effect { state: JobState::Active, ..stays },
            Command::Cancel => {
                Effect { state: JobState::Cancelled, withdraws: true, ends_running: true, ..stays }
            }
            Command::Retry | Command::Trigger => Effect { begins_run: true, ..stays },
            Command::Update => stays,
            Command::Delete => {
                Effect { state: JobState::Deleted, withdraws: true, ends_running: true, ..stays }
            }
        })
    }

    /// A run is tried again only when nothing of the job goes on: else two would.
    fn allows(self, command: Command) -> bool {
        let status = self.status();
        let is_over = matches!(self.state, JobState::Cancelled | JobState::Deleted);
        match command {
            Command::Pause => {
                matches!(status, JobStatus::Pending | JobStatus::Scheduled | JobStatus::Running)
            }
            Command::Resume => self.state == JobState::Paused,
            Command::Cancel => !is_over && status != JobStatus::Completed,
            Command::Retry => {
                self.state == JobState::Active
                    && self.live == 0
                    && self.last_outcome.is_some_and(Outcome::is_failure)
            }
            Command::Trigger | Command::Update => !is_over,
            Command::Delete => self.state != JobState::Deleted,
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
        let stopped = |state| JobFacts { state, ..running }.status();
        assert_eq!(stopped(JobState::Paused), JobStatus::Paused);
        assert_eq!(stopped(JobState::Cancelled), JobStatus::Cancelled);
    }

    #[test]
    fn a_recurring_job_is_scheduled_again_after_a_failure() {
        let failed = JobFacts { last_outcome: Some(Outcome::Failed), ..JobFacts::default() };
        assert_eq!(failed.status(), JobStatus::Failed);
        assert_eq!(JobFacts { has_next: true, ..failed }.status(), JobStatus::Scheduled);
    }

    #[test]
    fn a_due_job_that_no_worker_has_claimed_is_pending() {
        let due = JobFacts { has_next: true, is_due: true, ..JobFacts::default() };
        assert_eq!(due.status(), JobStatus::Pending);
        let running = JobFacts { live: 1, running: 1, ..due };
        assert_eq!(running.status(), JobStatus::Running);
        let paused = JobFacts { state: JobState::Paused, ..due };
        assert_eq!(paused.status(), JobStatus::Paused);
    }

    /// A job in each state, of which the last run was good or failed where that makes no other.
    fn in_each_state() -> Vec<(JobFacts, &'static str)> {
        let idle = JobFacts { has_next: true, ..JobFacts::default() };
        let after = |outcome| Some(outcome);
        let failed = JobFacts { last_outcome: after(Outcome::Failed), ..idle };
        let good = JobFacts { last_outcome: after(Outcome::Completed), ..idle };
        let stopped = |state| JobFacts { state, has_next: false, ..failed };
        vec![
            (JobFacts { live: 1, ..failed }, "pending"),
            (JobFacts { is_due: true, ..good }, "due"),
            (good, "scheduled"),
            (failed, "scheduled, failed"),
            (JobFacts { live: 1, running: 1, ..failed }, "running"),
            (stopped(JobState::Paused), "paused"),
            (JobFacts { has_next: false, ..good }, "completed"),
            (JobFacts { has_next: false, ..failed }, "failed"),
            (
                JobFacts { has_next: false, last_outcome: after(Outcome::Cancelled), ..good },
                "cancelled run",
            ),
            (stopped(JobState::Cancelled), "cancelled"),
            (stopped(JobState::Deleted), "deleted"),
        ]
    }

    #[test]
    fn each_pair_of_state_and_command_has_its_answer() {
        let table: Vec<String> = in_each_state()
            .into_iter()
            .map(|(facts, name)| {
                let row: String = Command::ALL
                    .map(|command| if facts.apply(command).is_ok() { 'x' } else { '.' })
                    .iter()
                    .collect();
                format!("{row} {name}")
            })
            .collect();
        // pause, resume, cancel, retry, trigger, update, delete
        assert_eq!(
            table,
            [
                "x.x.xxx pending",
                "x.x.xxx due",
                "x.x.xxx scheduled",
                "x.xxxxx scheduled, failed",
                "x.x.xxx running",
                ".xx.xxx paused",
                "....xxx completed",
                "..xxxxx failed",
                "..x.xxx cancelled run",
                "......x cancelled",
                "....... deleted",
            ]
        );
    }

    #[test]
    fn a_command_leads_where_it_says() {
        for (facts, name) in in_each_state() {
            for command in Command::ALL {
                let Ok(effect) = facts.apply(command) else { continue };
                let withdrawn = if effect.withdraws { facts.running } else { facts.live };
                let after = JobFacts { state: effect.state, live: withdrawn, ..facts };
                match command {
                    Command::Pause => assert_eq!(after.status(), JobStatus::Paused, "{name}"),
                    Command::Cancel => assert_eq!(after.status(), JobStatus::Cancelled, "{name}"),
                    Command::Resume => assert_ne!(after.status(), JobStatus::Paused, "{name}"),
                    Command::Retry => {
                        let begun = JobFacts { live: facts.live + 1, ..after };
                        assert_eq!(begun.status(), JobStatus::Pending, "{name}");
                    }
                    Command::Delete => assert_eq!(effect.state, JobState::Deleted),
                    Command::Trigger | Command::Update => {
                        assert_eq!(after.status(), facts.status(), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        let completed = in_each_state().swap_remove(6).0;
        assert_eq!(
            completed.apply(Command::Pause).unwrap_err().to_string(),
            "the job is completed: it does not allow pause, only trigger, update, delete"
        );
        let good = in_each_state().swap_remove(2).0;
        assert_eq!(
            good.apply(Command::Retry).unwrap_err().to_string(),
            "the job is scheduled and its last run did not fail: it does not allow retry, only \
             pause, cancel, trigger, update, delete"
        );
    }
}
