//! Applies one command to many jobs.

use std::collections::BTreeMap;

use evenkeel_core::order::Priority;
use evenkeel_core::status::{Command, NotAllowed};
use evenkeel_core::{Definition, JobId};
use evenkeel_store::{
    Applied, EventKind, Job, JobChange, JobCommand, JobCursor, JobFilter, JobSort, Now,
    PageRequest, Scope, Signal,
};

use super::followers::change_command;
use super::{ControlCommand, Jobs};
use crate::{CommandError, Result};

/// Number of jobs per batch.
const BATCH: u32 = 500;
/// Maximum number of tries to apply a change while other clients change the same job.
const TRIES: usize = 16;
/// Maximum number of refused jobs that a response lists.
pub const REFUSALS_LISTED_MAX: usize = 100;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BulkAction {
    Control(ControlCommand),
    SetPriority(Priority),
}

impl BulkAction {
    const fn command(self) -> Command {
        match self {
            Self::Control(command) => command.command(),
            Self::SetPriority(_) => Command::Update,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum JobSelection {
    Ids(Vec<JobId>),
    /// All jobs that match a filter, or only those after the cursor.
    Filter(JobFilter, Option<JobCursor>),
}

#[derive(Clone, PartialEq, Debug)]
pub struct BulkCommand {
    pub action: BulkAction,
    pub selection: JobSelection,
    /// If true, no job is changed; the result only counts the jobs to which the command would be
    /// applied.
    pub dry_run: bool,
}

/// A job to which the bulk command was not applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub id: JobId,
    /// Reason code of the refusal.
    pub reason: String,
    /// The reason as a sentence.
    pub detail: String,
}

/// The result of a bulk command, or of its dry run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BulkOutcome {
    /// Number of jobs that the bulk command selected.
    pub matched: u64,
    /// Number of jobs to which the bulk command was applied, or would be applied in a dry run.
    pub done: u64,
    /// Number of refused jobs by reason code.
    pub refused: BTreeMap<String, u64>,
    /// The first refused jobs, up to [`REFUSALS_LISTED_MAX`].
    pub refusals: Vec<Refusal>,
    /// Position in the list of jobs at which to continue, if the time limit was reached.
    pub next: Option<JobCursor>,
}

impl BulkOutcome {
    /// Counts the result of the bulk command for one job.
    fn add(&mut self, id: JobId, result: Applied) {
        let reason = match &result {
            Applied::Done(_) => {
                self.done += 1;
                return;
            }
            Applied::NotFound => "not_found".into(),
            Applied::NotAllowed(NotAllowed { status, .. }) => {
                format!("not_allowed_while_{}", status.as_str())
            }
            Applied::Stale(_) => "changed_meanwhile".into(),
            Applied::NameTaken(_) => "name_taken".into(),
            Applied::Duplicate(_) => "duplicate".into(),
        };
        *self.refused.entry(reason.clone()).or_default() += 1;
        if self.refusals.len() < REFUSALS_LISTED_MAX {
            let detail = CommandError::not_applied(Some(result)).to_string();
            self.refusals.push(Refusal { id, reason, detail });
        }
    }
}

impl Jobs {
    /// Applies a command to many jobs in batches; each job is handled independently. A command with
    /// a filter stops once `has_time` returns false, and returns a cursor to continue.
    pub async fn command_many(
        &self,
        scope: &Scope,
        command: &BulkCommand,
        has_time: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<BulkOutcome> {
        let mut outcome = BulkOutcome::default();
        match &command.selection {
            JobSelection::Ids(ids) => {
                for ids in ids.chunks(BATCH as usize) {
                    let jobs = self.store.get_jobs(scope, ids).await?;
                    let mut jobs: BTreeMap<JobId, Job> =
                        jobs.into_iter().map(|job| (job.id, job)).collect();
                    outcome.matched += ids.len() as u64;
                    let mut known = Vec::with_capacity(jobs.len());
                    for id in ids {
                        match jobs.remove(id) {
                            Some(job) => known.push(job),
                            None => outcome.add(*id, Applied::NotFound),
                        }
                    }
                    self.command_batch(scope, command, known, &mut outcome).await?;
                }
            }
            JobSelection::Filter(filter, from) => {
                let mut after = *from;
                loop {
                    // Jobs are read in the order of their creation, which no command changes, so
                    // each job is processed exactly once.
                    let page = PageRequest { limit: BATCH, offset: 0, after };
                    let page =
                        self.store.list_jobs(scope, filter, JobSort::default(), page).await?;
                    outcome.matched += page.items.len() as u64;
                    self.command_batch(scope, command, page.items, &mut outcome).await?;
                    after = page.next;
                    if after.is_none() || !has_time() {
                        break;
                    }
                }
                outcome.next = after;
            }
        }
        Ok(outcome)
    }

    async fn command_batch(
        &self,
        scope: &Scope,
        command: &BulkCommand,
        jobs: Vec<Job>,
        outcome: &mut BulkOutcome,
    ) -> Result<()> {
        if command.dry_run {
            for job in jobs {
                match job.facts().apply(command.action.command()) {
                    Ok(_) => outcome.done += 1,
                    Err(refusal) => outcome.add(job.id, Applied::NotAllowed(refusal)),
                }
            }
            return Ok(());
        }
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let applied = match command.action {
            BulkAction::Control(command) => self.control_many(scope, &ids, command, None).await,
            BulkAction::SetPriority(priority) => {
                self.change_priorities(scope, jobs, |_| priority).await
            }
        };
        let applied = applied.map_err(|error| error.after(outcome.done > 0))?;
        ids.into_iter().zip(applied).for_each(|(id, applied)| outcome.add(id, applied));
        Ok(())
    }

    /// Computes the new priority of each job from its stored priority, and sets it only if the job
    /// has not changed since it was read. A job that has changed is tried again, so two
    /// simultaneous boosts of a job both count.
    pub(crate) async fn change_priorities(
        &self,
        scope: &Scope,
        jobs: Vec<Job>,
        decide: impl Fn(Priority) -> Priority,
    ) -> Result<Vec<Applied>> {
        let mut answers: Vec<Applied> =
            jobs.into_iter().map(|job| Applied::Stale(Box::new(job))).collect();
        for _ in 0..TRIES {
            let stale = answers.iter().filter_map(|answer| match answer {
                Applied::Stale(job) => {
                    let priority = decide(job.definition.priority);
                    let definition = Some(Definition { priority, ..job.definition.clone() });
                    Some(change_command(job, JobChange { definition, ..JobChange::default() }))
                }
                _ => None,
            });
            let commands: Vec<JobCommand> = stale.collect();
            if commands.is_empty() {
                break;
            }
            let is_done = answers.iter().any(|answer| matches!(answer, Applied::Done(_)));
            let applied = self.store.apply_commands(scope, commands, Now::Database).await;
            let applied = applied.map_err(|error| CommandError::from(error).after(is_done))?;
            let stale = answers.iter_mut().filter(|answer| matches!(answer, Applied::Stale(_)));
            stale.zip(applied).for_each(|(answer, applied)| *answer = applied);
        }
        let done = answers.iter().filter_map(|answer| match answer {
            Applied::Done(done) => done.job.as_ref().map(|job| job.id),
            _ => None,
        });
        let done: Vec<JobId> = done.collect();
        if !done.is_empty() {
            self.announce(Signal::Jobs).await;
            self.publish(scope, EventKind::JobUpdated, &done).await;
        }
        Ok(answers)
    }
}
