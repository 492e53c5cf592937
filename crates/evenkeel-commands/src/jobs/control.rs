//! Pauses, resumes, cancels, retries and deletes jobs.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::next_time::{next_after_resume, next_after_retry};
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, EventKind, Job, JobCommand, Now, Scope, Signal,
};

use super::{Jobs, TRIES};
use crate::balance::{PlacementReason, Placing};
use crate::update::schedule_state;
use crate::{CommandError, Result};

/// Number of attempts that a purge deletes per transaction.
const PURGE_BATCH: u32 = 500;

/// A command that pauses, resumes, cancels, retries or deletes a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ControlCommand {
    Pause,
    Resume,
    Cancel,
    /// Retries the last run of the job, if it failed.
    Retry,
    Delete,
}

impl ControlCommand {
    pub const fn command(self) -> Command {
        match self {
            Self::Pause => Command::Pause,
            Self::Resume => Command::Resume,
            Self::Cancel => Command::Cancel,
            Self::Retry => Command::Retry,
            Self::Delete => Command::Delete,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletedJob {
    /// Running attempts that were asked to stop.
    pub running: Vec<AttemptKey>,
    /// Number of attempts that the purge deleted; `None` without a purge.
    pub purged: Option<u64>,
}

impl Jobs {
    /// Applies a command to at most [`COMMANDS_MAX`](evenkeel_store::COMMANDS_MAX) jobs, each
    /// independently. Returns one result per job, in the order of `ids`. If `if_generation` is
    /// given, the command is applied only to jobs of that generation.
    pub async fn control_many(
        &self,
        scope: &Scope,
        ids: &[JobId],
        command: ControlCommand,
        if_generation: Option<i32>,
    ) -> Result<Vec<Applied>> {
        let mut answers: BTreeMap<JobId, Applied> = BTreeMap::new();
        let mut left: BTreeSet<JobId> = ids.iter().copied().collect();
        for _ in 0..TRIES {
            if left.is_empty() {
                break;
            }
            let (commands, placing) =
                self.store_commands(scope, &left, command, if_generation).await?;
            let commanded: Vec<JobId> = commands.iter().map(|command| command.id).collect();
            let has_changed = answers.values().any(is_done);
            let applied = self.store.apply_commands(scope, commands, Now::Database).await;
            let applied = applied.map_err(|error| CommandError::from(error).after(has_changed))?;
            if let Some(mut placing) = placing {
                let answered = commanded.iter().zip(&applied);
                answered.filter(|(_, it)| is_done(it)).for_each(|(id, _)| placing.confirm(*id));
            }
            answers.extend(commanded.into_iter().zip(applied));
            // If another client changed the job first, the command is tried again, unless the
            // client expects another generation.
            let is_wanted = |job: &Job| if_generation.is_none_or(|wanted| wanted == job.generation);
            left.retain(
                |id| matches!(answers.get(id), Some(Applied::Stale(job)) if is_wanted(job)),
            );
        }
        if answers.values().any(is_done) {
            self.announce_applied(command).await;
            self.publish_applied(scope, command, &answers).await;
        }
        let answer = |id: &JobId| answers.get(id).cloned().unwrap_or(Applied::NotFound);
        Ok(ids.iter().map(answer).collect())
    }

    /// Applies a command to one job. If `if_generation` is given, the command is applied only if
    /// the job has one of these generations.
    pub async fn control(
        &self,
        scope: &Scope,
        id: JobId,
        command: ControlCommand,
        if_generation: Option<&[i32]>,
    ) -> Result<CommandEffect> {
        let mut answer = None;
        for _ in 0..TRIES {
            let expected = match if_generation {
                None => None,
                Some([only]) => Some(*only),
                Some(several) => Some(self.expected_generation(scope, id, several).await?),
            };
            answer = self.control_many(scope, &[id], command, expected).await?.pop();
            // If the job changed from one expected generation to another, the command is tried
            // again with the new generation.
            let is_expected = |job: &Job| {
                if_generation.is_some_and(|all| all.len() > 1 && all.contains(&job.generation))
            };
            if !matches!(&answer, Some(Applied::Stale(job)) if is_expected(job)) {
                break;
            }
        }
        match answer {
            Some(Applied::Done(done)) => Ok(*done),
            other => Err(CommandError::not_applied(other)),
        }
    }

    /// Returns the generation of the job if it is one of the expected generations. Returns -1,
    /// which no job has, if the job has an unexpected generation. For a command with the generation
    /// -1, the store checks the state of the job first, and reports a state that forbids the
    /// command.
    async fn expected_generation(&self, scope: &Scope, id: JobId, several: &[i32]) -> Result<i32> {
        let generation = self.get(scope, id).await?.generation;
        Ok(if several.contains(&generation) { generation } else { -1 })
    }

    /// Deletes a job. The history of the job stays until retention removes it, unless `purges` is
    /// true. A purge also removes the history of a job that was already deleted.
    pub async fn delete(
        &self,
        scope: &Scope,
        id: JobId,
        purges: bool,
        if_generation: Option<&[i32]>,
    ) -> Result<DeletedJob> {
        let deleted = self.control(scope, id, ControlCommand::Delete, if_generation).await;
        let running = match deleted {
            Ok(done) => Some(done.running),
            Err(CommandError::NotFound) if purges => None,
            Err(error) => return Err(error),
        };
        let mut purged = None;
        if purges {
            let count = self.purge(scope, id).await;
            purged = Some(count.map_err(|error| error.after(running.is_some()))?);
        }
        if running.is_none() && purged == Some(0) {
            return Err(CommandError::NotFound);
        }
        Ok(DeletedJob { running: running.unwrap_or_default(), purged })
    }

    async fn purge(&self, scope: &Scope, id: JobId) -> Result<u64> {
        let mut purged = 0;
        loop {
            let more = self.store.purge(scope, id, PURGE_BATCH).await;
            let more = more.map_err(|error| CommandError::from(error).after(purged > 0))?;
            purged += more;
            if more < u64::from(PURGE_BATCH) {
                return Ok(purged);
            }
        }
    }

    /// Builds the commands for the store, and chooses the new start times of resumed or retried
    /// jobs. The store resumes or retries a job only if it has not changed since it was read.
    async fn store_commands(
        &self,
        scope: &Scope,
        ids: &BTreeSet<JobId>,
        command: ControlCommand,
        if_generation: Option<i32>,
    ) -> Result<(Vec<JobCommand>, Option<Placing>)> {
        let same_for_all = match command {
            ControlCommand::Pause => Some(Action::Pause),
            ControlCommand::Cancel => Some(Action::Cancel),
            ControlCommand::Delete => Some(Action::Delete),
            ControlCommand::Resume | ControlCommand::Retry => None,
        };
        if let Some(action) = same_for_all {
            let build = |id: &JobId| {
                let action = action.clone();
                JobCommand { id: *id, if_generation, if_fired: None, action }
            };
            return Ok((ids.iter().map(build).collect(), None));
        }
        let ids: Vec<JobId> = ids.iter().copied().collect();
        let now = self.store.now().await?;
        let jobs = self.store.get_jobs(scope, &ids).await?;
        let placing = self.balance.placing(scope, now, PlacementReason::Rescheduled).await?;
        let mut placing = placing.in_bulk(jobs.len() > 1);
        let build = |job: &Job| JobCommand {
            id: job.id,
            if_generation: Some(if_generation.unwrap_or(job.generation)),
            if_fired: fired_if_limited(job),
            action: self.revive(job, command == ControlCommand::Retry, now, &mut placing),
        };
        let commands = jobs.iter().map(build).collect();
        Ok((commands, Some(placing)))
    }

    /// Builds the action that resumes a job or retries its last run.
    fn revive(&self, job: &Job, retries: bool, now: Timestamp, placing: &mut Placing) -> Action {
        let (definition, so_far) = (&job.definition, schedule_state(job));
        let choose = |after| placing.choose(job.id, definition, Some(job), after);
        if !retries {
            return Action::Resume { next_at: next_after_resume(definition, so_far, now, choose) };
        }
        let next_at = match job.next_at {
            None => next_after_retry(definition, so_far, now, choose),
            Some(_) => None,
        };
        // The random number `n` distinguishes retries of the same job in the same microsecond.
        Action::Retry { n: self.chance.bits() as u32, next_at }
    }

    async fn publish_applied(
        &self,
        scope: &Scope,
        command: ControlCommand,
        answers: &BTreeMap<JobId, Applied>,
    ) {
        let kind = match command {
            ControlCommand::Pause => EventKind::JobPaused,
            ControlCommand::Resume => EventKind::JobResumed,
            ControlCommand::Cancel => EventKind::JobCancelled,
            ControlCommand::Delete => EventKind::JobDeleted,
            ControlCommand::Retry => {
                for (id, answer) in answers {
                    if let Applied::Done(done) = answer
                        && let Some(run) = done.run
                    {
                        self.publish_requested(scope, *id, run).await;
                    }
                }
                return;
            }
        };
        let done = answers.iter().filter(|(_, answer)| is_done(answer)).map(|(id, _)| *id);
        self.publish(scope, kind, &done.collect::<Vec<_>>()).await;
        let withdrawn = answers.values().filter_map(|answer| match answer {
            Applied::Done(done) => Some(done.withdrawn.iter().copied()),
            _ => None,
        });
        self.publish_withdrawn(scope, &withdrawn.flatten().collect::<Vec<_>>()).await;
    }

    async fn announce_applied(&self, command: ControlCommand) {
        match command {
            ControlCommand::Resume | ControlCommand::Retry => self.announce(Signal::Jobs).await,
            ControlCommand::Cancel | ControlCommand::Delete => self.announce(Signal::Cancel).await,
            // Nodes need no signal about a pause, because the store refuses to create runs of a
            // paused job.
            ControlCommand::Pause => {}
        }
    }
}

fn is_done(answer: &Applied) -> bool {
    matches!(answer, Applied::Done(_))
}

/// Returns the number of the job's scheduled runs so far, if the job has `max_runs`.
pub(super) fn fired_if_limited(job: &Job) -> Option<u64> {
    job.definition.bounds.max_runs.map(|_| job.fired)
}
