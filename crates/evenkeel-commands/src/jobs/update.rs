//! Changes jobs.

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Applied, EventKind, Job, JobChange, JobCommand, Now, Scope, Signal};
use serde_json::Value;

use super::control::{ControlCommand, fired_if_limited};
use super::followers::change_command;
use super::{Jobs, TRIES};
use crate::balance::PlacementReason;
use crate::update::{EditMode, JobEdit, new_next_time, read_change};
use crate::{CommandError, Object, Result};

/// A change of a job, as the client sent it.
#[derive(Clone, PartialEq, Debug)]
pub struct Edit {
    /// Some fields of a job, or the whole job as the client saw it, with edits.
    pub sent: Value,
    pub mode: EditMode,
    /// If given, the change is applied only if the job has one of these generations.
    pub if_generation: Option<Vec<i32>>,
}

impl Edit {
    fn allows(&self, generation: i32) -> Result<()> {
        match &self.if_generation {
            Some(wanted) if !wanted.contains(&generation) => {
                Err(CommandError::Stale { generation })
            }
            _ => Ok(()),
        }
    }
}

impl Jobs {
    /// Changes a job. Fields that equal those in the output of `show` do not count as changes; if
    /// no field changes, nothing is written. Returns the changed job, and the current time of the
    /// store's clock.
    pub async fn update(
        &self,
        scope: &Scope,
        id: JobId,
        edit: &Edit,
        show: &(dyn Fn(&Job, Timestamp) -> Object + Send + Sync),
    ) -> Result<(Job, Timestamp)> {
        let mut job = self.get(scope, id).await?;
        for _ in 0..TRIES {
            edit.allows(job.generation)?;
            let now = self.store.now().await?;
            let seen = show(&job, now);
            let read = read_change(&job, &seen, &edit.sent, edit.mode, now, &*self.executors)
                .map_err(CommandError::Invalid)?;
            let Some(JobEdit { mut change, to_place, applies_target, enabled }) = read else {
                return Ok((job, now));
            };
            if let Some(command) = enabled.map(pause_or_resume) {
                job.facts().apply(command.command())?;
            }
            if change == JobChange::default() {
                let generation = [job.generation];
                let expected = edit.if_generation.is_some().then_some(&generation[..]);
                let enabled_job = self.set_enabled(scope, id, enabled, expected).await?;
                return Ok((enabled_job.unwrap_or(job), now));
            }
            self.apply_target_to_change(scope, &job, &mut change, applies_target).await?;
            // A job whose secret was deleted can still be changed in fields that do not use the
            // secret.
            if let Some(new) = change.definition.as_ref().filter(|new| {
                new.executor != job.definition.executor || new.payload != job.definition.payload
            }) {
                self.secrets_of(scope, [new]).await?.check(new)?;
            }
            let mut placing = None;
            if let Some(new) = to_place {
                let placing = placing
                    .insert(self.balance.placing(scope, now, PlacementReason::Rescheduled).await?);
                let choose = |after| placing.choose(id, &new, Some(&job), after);
                let next_at =
                    new_next_time(&job, &new, now, choose).map_err(CommandError::Invalid)?;
                change.next_at = Some(next_at);
            }
            let limited =
                change.definition.as_ref().is_some_and(|new| new.bounds.max_runs.is_some());
            let if_fired = limited.then_some(job.fired).or_else(|| fired_if_limited(&job));
            let command = JobCommand { if_fired, ..change_command(&job, change) };
            let applied = self.store.apply_commands(scope, vec![command], Now::Database).await?;
            match applied.into_iter().next() {
                Some(Applied::Done(done)) => {
                    placing.iter_mut().for_each(|placing| placing.confirm(id));
                    self.announce(Signal::Jobs).await;
                    self.publish(scope, EventKind::JobUpdated, &[id]).await;
                    let edited = done.job.ok_or(CommandError::NotFound)?;
                    return Ok((self.finish_edit(scope, job, edited, enabled).await?, now));
                }
                Some(Applied::Stale(present)) => job = *present,
                other => return Err(CommandError::not_applied(other)),
            }
        }
        Err(CommandError::Stale { generation: job.generation })
    }

    /// Pauses or resumes a job after its other fields were edited. A pause withdraws waiting runs,
    /// which cannot be undone. A resume checks the deduplication key and the next run time that the
    /// job has after the edit. If the job cannot be resumed, the edit is reverted.
    async fn finish_edit(
        &self,
        scope: &Scope,
        before: Job,
        edited: Job,
        enabled: Option<bool>,
    ) -> Result<Job> {
        match self.set_enabled(scope, edited.id, enabled, None).await {
            Ok(enabled_job) => Ok(enabled_job.unwrap_or(edited)),
            Err(refusal) if enabled == Some(true) => {
                self.restore(scope, before, &edited).await?;
                Err(refusal)
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Pauses or resumes a job if `enabled` is given, and then returns the job.
    async fn set_enabled(
        &self,
        scope: &Scope,
        id: JobId,
        enabled: Option<bool>,
        if_generation: Option<&[i32]>,
    ) -> Result<Option<Job>> {
        match enabled {
            None => Ok(None),
            Some(enabled) => {
                Ok(self.control(scope, id, pause_or_resume(enabled), if_generation).await?.job)
            }
        }
    }
}

const fn pause_or_resume(enabled: bool) -> ControlCommand {
    if enabled { ControlCommand::Resume } else { ControlCommand::Pause }
}
