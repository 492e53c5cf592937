//! Changing jobs that exist.

use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{Action, Applied, EventKind, Job, JobChange, JobCommand, Now, Scope, Signal};
use serde_json::{Map, Value};

use super::Jobs;
use super::control::{Ask, counted};
use crate::CommandError;
use crate::balance::PlacementReason;
use crate::update::{Manner, Read, placed, read_change};

/// So often a change is read anew because something else changed the job meanwhile.
const TRIES: usize = 8;

/// A change of a job, as somebody sends it.
#[derive(Clone, PartialEq, Debug)]
pub struct Edit {
    /// Some fields of a job, or all that was shown, edited.
    pub sent: Value,
    /// How that is meant.
    pub manner: Manner,
    /// Only if the job's generation is one of these.
    pub if_generation: Option<Vec<i32>>,
}

impl Edit {
    /// May a job of this generation be changed?
    fn allows(&self, generation: i32) -> Result<(), CommandError> {
        match &self.if_generation {
            Some(wanted) if !wanted.contains(&generation) => {
                Err(CommandError::Stale { generation })
            }
            _ => Ok(()),
        }
    }
}

impl Jobs {
    /// Changes a job. What equals what `show` shows of it is no change; if nothing else is sent,
    /// nothing is written. Answers with the job and the moment it is like that.
    pub async fn update(
        &self,
        scope: &Scope,
        id: JobId,
        edit: &Edit,
        show: &(dyn Fn(&Job, Timestamp) -> Map<String, Value> + Send + Sync),
    ) -> Result<(Job, Timestamp), CommandError> {
        let mut job = self.get(scope, id).await?;
        for _ in 0..TRIES {
            edit.allows(job.generation)?;
            let now = self.store.now().await?;
            let seen = show(&job, now);
            let read = read_change(&job, &seen, &edit.sent, edit.manner, now, &*self.executors)
                .map_err(CommandError::Invalid)?;
            let Some(Read { mut change, to_place, to_aim, enabled }) = read else {
                return Ok((job, now));
            };
            if let Some(ask) = enabled.map(turn) {
                job.facts().apply(ask.command()).map_err(CommandError::NotAllowed)?;
            }
            if change == JobChange::default() {
                let meant = edit.if_generation.is_some().then_some([job.generation]);
                let turned = self.turn(scope, id, enabled, meant.as_ref().map(<[_; 1]>::as_slice));
                return Ok((turned.await?.unwrap_or(job), now));
            }
            self.aim_change(scope, &job, &mut change, to_aim).await?;
            // A job whose secret was deleted can still be changed in all else.
            if let Some(new) = change.definition.as_ref().filter(|new| {
                new.executor != job.definition.executor || new.payload != job.definition.payload
            }) {
                self.secrets_of(scope, [new]).await?.check(new)?;
            }
            let mut placing = None;
            if let Some(new) = to_place {
                let placing =
                    placing.insert(self.balance.placing(scope, now, PlacementReason::Rescheduled).await?);
                let choose = |after| placing.rescheduled(&job, &new, after);
                let next_at = placed(&job, &new, now, choose).map_err(CommandError::Invalid)?;
                change.next_at = Some(next_at);
            }
            let limited =
                change.definition.as_ref().is_some_and(|new| new.bounds.max_runs.is_some());
            let order = JobCommand {
                id,
                if_generation: Some(job.generation),
                if_fired: limited.then_some(job.fired).or_else(|| counted(&job)),
                action: Action::Change(Box::new(change)),
            };
            let obeyed = self.store.apply_commands(scope, vec![order], Now::Database).await?;
            match obeyed.into_iter().next() {
                Some(Applied::Done(done)) => {
                    placing.iter_mut().for_each(|placing| placing.confirm(id));
                    self.announce(Signal::Jobs).await;
                    self.tell(scope, EventKind::JobUpdated, &[id]).await;
                    let edited = done.job.ok_or(CommandError::NotFound)?;
                    // Last, because it cannot be taken back: a pause withdraws what waits. And a
                    // resume asks for the key and the next time that the job has by then.
                    return match self.turn(scope, id, enabled, None).await {
                        Ok(turned) => Ok((turned.unwrap_or(edited), now)),
                        Err(refusal) if enabled == Some(true) => {
                            self.restore(scope, job, &edited).await?;
                            Err(refusal)
                        }
                        Err(refusal) => Err(refusal),
                    };
                }
                Some(Applied::Stale(present)) => job = *present,
                Some(Applied::NotAllowed(refusal)) => {
                    return Err(CommandError::NotAllowed(refusal));
                }
                Some(Applied::NameTaken(id)) => return Err(CommandError::NameTaken { id }),
                Some(Applied::Duplicate(id)) => return Err(CommandError::Duplicate { id }),
                Some(Applied::NotFound) | None => return Err(CommandError::NotFound),
            }
        }
        Err(CommandError::Stale { generation: job.generation })
    }

    /// Pauses or resumes a job, if that is wanted; says what it is then.
    async fn turn(
        &self,
        scope: &Scope,
        id: JobId,
        enabled: Option<bool>,
        if_generation: Option<&[i32]>,
    ) -> Result<Option<Job>, CommandError> {
        match enabled {
            None => Ok(None),
            Some(enabled) => Ok(self.ask_one(scope, id, turn(enabled), if_generation).await?.job),
        }
    }
}

const fn turn(enabled: bool) -> Ask {
    if enabled { Ask::Resume } else { Ask::Pause }
}
