//! What people ask of jobs that exist: pause, resume, cancel, retry, delete.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::next_time::{ScheduleState, next_after_resume, next_after_retry};
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, EventKind, Job, JobCommand, Now, Scope, Signal,
};

use super::Jobs;
use crate::CommandError;
use crate::balance::{PlacementReason, Placing};

/// What was decided on what a job no longer is, is decided again so often.
const TRIES: usize = 8;

/// So many attempts are forgotten in one transaction.
const PURGED_AT_ONCE: u32 = 500;

/// What can be asked of any job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Stop until resumed.
    Pause,
    /// Go on.
    Resume,
    /// End for good.
    Cancel,
    /// Try the last run again, which failed.
    Retry,
    /// Be gone.
    Delete,
}

impl Ask {
    /// What it is to a job's state.
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

/// A job that is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forgotten {
    /// What runs of it was asked to end.
    pub running: Vec<AttemptKey>,
    /// So many attempts were forgotten, if that was asked for.
    pub purged: Option<u64>,
}

impl Jobs {
    /// Asks the same of several jobs, at most [`COMMANDS_MAX`](evenkeel_store::COMMANDS_MAX), each on
    /// its own, and answers in their order. With a generation, only jobs that still have it obey.
    pub async fn ask(
        &self,
        scope: &Scope,
        ids: &[JobId],
        ask: Ask,
        if_generation: Option<i32>,
    ) -> Result<Vec<Applied>, CommandError> {
        let mut answers: BTreeMap<JobId, Applied> = BTreeMap::new();
        let mut left: BTreeSet<JobId> = ids.iter().copied().collect();
        for _ in 0..TRIES {
            if left.is_empty() {
                break;
            }
            let (orders, placing) = self.orders(scope, &left, ask, if_generation).await?;
            let asked: Vec<JobId> = orders.iter().map(|order| order.id).collect();
            let is_done = answers.values().any(|answer| matches!(answer, Applied::Done(_)));
            let obeyed = self.store.apply_commands(scope, orders, Now::Database).await;
            let obeyed = obeyed.map_err(|error| CommandError::from(error).after(is_done))?;
            if let Some(mut placing) = placing {
                let answered = asked.iter().zip(&obeyed);
                let done = answered.filter(|(_, answer)| matches!(answer, Applied::Done(_)));
                done.for_each(|(id, _)| placing.confirm(*id));
            }
            answers.extend(asked.into_iter().zip(obeyed));
            // Somebody was quicker: what was decided is decided again, on the version that is meant.
            left.retain(|id| match answers.get(id) {
                Some(Applied::Stale(job)) => if_generation.is_none_or(|one| one == job.generation),
                _ => false,
            });
        }
        if answers.values().any(|answer| matches!(answer, Applied::Done(_))) {
            self.announce_orders(ask).await;
            self.tell_obeyed(scope, ask, &answers).await;
        }
        let answer = |id: &JobId| answers.get(id).cloned().unwrap_or(Applied::NotFound);
        Ok(ids.iter().map(answer).collect())
    }

    /// Asks it of one job. With generations, only if it still has one of them.
    pub async fn ask_one(
        &self,
        scope: &Scope,
        id: JobId,
        ask: Ask,
        if_generation: Option<&[i32]>,
    ) -> Result<CommandEffect, CommandError> {
        let mut answer = None;
        for _ in 0..TRIES {
            let meant = match if_generation {
                None => None,
                Some([one]) => Some(*one),
                Some(several) => Some(self.present_of(scope, id, several).await?),
            };
            answer = self.ask(scope, &[id], ask, meant).await?.pop();
            // From one version that is meant to another: that one is asked.
            let is_meant = |job: &Job| {
                if_generation.is_some_and(|all| all.len() > 1 && all.contains(&job.generation))
            };
            if !matches!(&answer, Some(Applied::Stale(job)) if is_meant(job)) {
                break;
            }
        }
        match answer {
            Some(Applied::Done(done)) => Ok(*done),
            Some(Applied::NotAllowed(refusal)) => Err(CommandError::NotAllowed(refusal)),
            Some(Applied::Stale(job)) => Err(CommandError::Stale { generation: job.generation }),
            Some(Applied::NameTaken(id)) => Err(CommandError::NameTaken { id }),
            Some(Applied::Duplicate(id)) => Err(CommandError::Duplicate { id }),
            Some(Applied::NotFound) | None => Err(CommandError::NotFound),
        }
    }

    /// The job's generation if it is one of several; else one that no job has, since whether its
    /// state allows the command is told first.
    async fn present_of(
        &self,
        scope: &Scope,
        id: JobId,
        several: &[i32],
    ) -> Result<i32, CommandError> {
        let generation = self.get(scope, id).await?.generation;
        Ok(if several.contains(&generation) { generation } else { -1 })
    }

    /// Deletes a job for good; its history stays until retention takes it, unless it is purged.
    /// Then what is left of a job that was deleted before goes as well.
    pub async fn delete(
        &self,
        scope: &Scope,
        id: JobId,
        purges: bool,
        if_generation: Option<&[i32]>,
    ) -> Result<Forgotten, CommandError> {
        let deleted = self.ask_one(scope, id, Ask::Delete, if_generation).await;
        let running = match deleted {
            Ok(done) => Some(done.running),
            Err(CommandError::NotFound) if purges => None,
            Err(error) => return Err(error),
        };
        let purged = match purges {
            true => {
                let purged = self.purge(scope, id).await;
                Some(purged.map_err(|error| error.after(running.is_some()))?)
            }
            false => None,
        };
        if running.is_none() && purged == Some(0) {
            return Err(CommandError::NotFound);
        }
        Ok(Forgotten { running: running.unwrap_or_default(), purged })
    }

    async fn purge(&self, scope: &Scope, id: JobId) -> Result<u64, CommandError> {
        let mut purged = 0;
        loop {
            let more = self.store.purge(scope, id, PURGED_AT_ONCE).await;
            let more = more.map_err(|error| CommandError::from(error).after(purged > 0))?;
            purged += more;
            if more < u64::from(PURGED_AT_ONCE) {
                return Ok(purged);
            }
        }
    }

    /// The orders that jobs are given, and the places that they need. What depends on what a job is,
    /// is decided on what it is now, and holds for that alone.
    async fn orders(
        &self,
        scope: &Scope,
        ids: &BTreeSet<JobId>,
        ask: Ask,
        if_generation: Option<i32>,
    ) -> Result<(Vec<JobCommand>, Option<Placing>), CommandError> {
        let plain = |action: Action| {
            let order = |id: &JobId| JobCommand {
                id: *id,
                if_generation,
                if_fired: None,
                action: action.clone(),
            };
            Ok((ids.iter().map(order).collect(), None))
        };
        match ask {
            Ask::Pause => return plain(Action::Pause),
            Ask::Cancel => return plain(Action::Cancel),
            Ask::Delete => return plain(Action::Delete),
            Ask::Resume | Ask::Retry => {}
        }
        let ids: Vec<JobId> = ids.iter().copied().collect();
        let now = self.store.now().await?;
        let jobs = self.store.get_jobs(scope, &ids).await?;
        let placing = self.balance.placing(scope, now, PlacementReason::Rescheduled).await?;
        let mut placing = placing.in_bulk(jobs.len() > 1);
        let order = |job: &Job| JobCommand {
            id: job.id,
            if_generation: Some(if_generation.unwrap_or(job.generation)),
            if_fired: counted(job),
            action: self.decided(job, ask, now, &mut placing),
        };
        let orders = jobs.iter().map(order).collect();
        Ok((orders, Some(placing)))
    }

    fn decided(&self, job: &Job, ask: Ask, now: Timestamp, placing: &mut Placing) -> Action {
        let definition = &job.definition;
        let choose = |after| placing.rescheduled(job, definition, after);
        let so_far = ScheduleState {
            fired: job.fired,
            last_fired_at: job.last_fired_at,
            live: job.live,
            last_outcome: job.last_outcome,
            since: Some(job.since),
        };
        match ask {
            Ask::Resume => {
                Action::Resume { next_at: next_after_resume(definition, so_far, now, choose) }
            }
            Ask::Retry => {
                let revives = job.next_at.is_none();
                let revived = || next_after_retry(definition, so_far, now, choose);
                let next_at = if revives { revived() } else { None };
                // Only the low bits count; they tell runs of one microsecond apart.
                Action::Retry { n: self.chance.bits() as u32, next_at }
            }
            Ask::Pause => Action::Pause,
            Ask::Cancel => Action::Cancel,
            Ask::Delete => Action::Delete,
        }
    }

    /// Tells those who listen what the jobs have done.
    async fn tell_obeyed(&self, scope: &Scope, ask: Ask, answers: &BTreeMap<JobId, Applied>) {
        let kind = match ask {
            Ask::Pause => EventKind::JobPaused,
            Ask::Resume => EventKind::JobResumed,
            Ask::Cancel => EventKind::JobCancelled,
            Ask::Delete => EventKind::JobDeleted,
            Ask::Retry => {
                for (id, answer) in answers {
                    if let Applied::Done(done) = answer
                        && let Some(run) = done.run
                    {
                        self.tell_requested(scope, *id, run).await;
                    }
                }
                return;
            }
        };
        let is_done = |answer: &Applied| matches!(answer, Applied::Done(_));
        let done = answers.iter().filter(|(_, answer)| is_done(answer)).map(|(id, _)| *id);
        self.tell(scope, kind, &done.collect::<Vec<_>>()).await;
        let withdrawn = answers.values().filter_map(|answer| match answer {
            Applied::Done(done) => Some(done.withdrawn.iter().copied()),
            _ => None,
        });
        self.tell_withdrawn(scope, &withdrawn.flatten().collect::<Vec<_>>()).await;
    }

    async fn announce_orders(&self, ask: Ask) {
        match ask {
            Ask::Resume | Ask::Retry => self.announce(Signal::Jobs).await,
            Ask::Cancel | Ask::Delete => self.announce(Signal::Cancel).await,
            // Whoever still has it in memory is refused when it fires.
            Ask::Pause => {}
        }
    }
}

/// How many of its times were fired, if that decides whether it gets another.
pub(super) fn counted(job: &Job) -> Option<u64> {
    job.definition.bounds.max_runs.map(|_| job.fired)
}
