//! The status of a job, and which commands each status allows.

use serde::{Deserialize, Serialize};

use crate::attempt::Outcome;
use crate::named_enum;

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum JobStatus {
        /// A scheduled time has been reached, but no worker has claimed the run yet.
        Pending => "pending",
        Scheduled => "scheduled",
        Running => "running",
        Paused => "paused",
        /// The job has no further runs, and the last run succeeded.
        Completed => "completed",
        /// The job has no further runs, and the last run did not succeed.
        Failed => "failed",
        Cancelled => "cancelled",
    }
}

named_enum! {
    /// The state of a job that only commands (such as pause and delete) change.
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
    pub enum JobState {
        #[default]
        Active => "active",
        Paused => "paused",
        Cancelled => "cancelled",
        /// Only the history is left.
        Deleted => "deleted",
    }
}

/// The facts that determine a job's status and the commands that the job allows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFacts {
    pub state: JobState,
    /// Runs with a running attempt.
    pub running: u32,
    /// Active runs.
    pub live: u32,
    /// True if the job has a next scheduled time.
    pub has_next: bool,
    /// True if the next scheduled time has been reached, so that the run only waits for a worker.
    /// `is_due` is false while a blackout delays the job; see
    /// [`Definition::next_start`](crate::Definition::next_start).
    pub is_due: bool,
    pub last_outcome: Option<Outcome>,
}

impl JobFacts {
    /// Returns the status of the job, which depends first on the last command (such as pause), then
    /// on active runs, then on the next scheduled time, then on the last outcome.
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

    /// Decides what a command does to the job. The effects of commands are decided only in `apply`.
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

    /// The command `retry` is allowed only without an active run, to avoid two active runs.
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

named_enum! {
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
    pub enum Command {
        Pause => "pause",
        Resume => "resume",
        Cancel => "cancel",
        /// Retries the last run, if it failed.
        Retry => "retry",
        /// Runs the job now, in addition to its schedule.
        Trigger => "trigger",
        Update => "update",
        Delete => "delete",
    }
}

/// What a command does to a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The state after the command.
    pub state: JobState,
    /// True if the command cancels waiting runs and delayed attempts.
    pub withdraws: bool,
    /// True if the command stops running attempts.
    pub ends_running: bool,
    /// True if the command starts a new run.
    pub begins_run: bool,
}

/// The error for a command that the job's status does not allow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.in_words())]
pub struct NotAllowed {
    pub status: JobStatus,
    pub command: Command,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commanded_state_comes_before_activity() {
        let running = JobFacts { running: 1, live: 1, has_next: true, ..JobFacts::default() };
        assert_eq!(running.status(), JobStatus::Running);
        let stopped = |state| JobFacts { state, ..running }.status();
        assert_eq!(stopped(JobState::Paused), JobStatus::Paused);
        assert_eq!(stopped(JobState::Cancelled), JobStatus::Cancelled);
    }

    #[test]
    fn recurring_job_is_scheduled_again_after_a_failure() {
        let failed = JobFacts { last_outcome: Some(Outcome::Failed), ..JobFacts::default() };
        assert_eq!(failed.status(), JobStatus::Failed);
        assert_eq!(JobFacts { has_next: true, ..failed }.status(), JobStatus::Scheduled);
    }

    #[test]
    fn unclaimed_due_job_is_pending() {
        let due = JobFacts { has_next: true, is_due: true, ..JobFacts::default() };
        assert_eq!(due.status(), JobStatus::Pending);
        let running = JobFacts { live: 1, running: 1, ..due };
        assert_eq!(running.status(), JobStatus::Running);
        let paused = JobFacts { state: JobState::Paused, ..due };
        assert_eq!(paused.status(), JobStatus::Paused);
    }

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
    fn each_pair_of_state_and_command_has_its_result() {
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
        // Columns: pause, resume, cancel, retry, trigger, update, delete.
        assert_eq!(
            table,
            [
                "x.x.xxx pending", "x.x.xxx due", "x.x.xxx scheduled", "x.xxxxx scheduled, failed",
                "x.x.xxx running", ".xx.xxx paused", "....xxx completed", "..xxxxx failed",
                "..x.xxx cancelled run", "......x cancelled", "....... deleted",
            ]
        );
    }

    #[test]
    fn command_leads_to_the_state_it_names() {
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
    fn refusal_lists_the_allowed_commands() {
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
