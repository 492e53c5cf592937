//! One command for many jobs.

use std::collections::BTreeMap;

use evenkeel_core::order::Priority;
use evenkeel_core::status::{Command, NotAllowed};
use evenkeel_core::{Definition, JobId};
use evenkeel_store::{
    Action, Applied, EventKind, Job, JobChange, JobCommand, JobCursor, JobFilter, JobSort, Now,
    PageRequest, Scope, Signal,
};

use super::{Ask, Jobs};
use crate::CommandError;

/// Jobs that are looked at, or ordered about, at once.
const BATCH: u32 = 500;
/// So often an order is given anew because something else changed the job.
const TRIES: usize = 5;
/// Refusals that are told one by one.
pub const REFUSALS_TOLD_MAX: usize = 100;

/// What many jobs are to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BulkAction {
    /// Fire no more until they are resumed.
    Pause,
    /// Go on.
    Resume,
    /// End for good.
    Cancel,
    /// Try the last run again, which failed.
    Retry,
    /// Be gone.
    Delete,
    /// Have this weight in their lanes.
    SetPriority(Priority),
}

impl BulkAction {
    /// What it is to a job's state.
    pub const fn command(self) -> Command {
        match self {
            Self::Pause => Command::Pause,
            Self::Resume => Command::Resume,
            Self::Cancel => Command::Cancel,
            Self::Retry => Command::Retry,
            Self::Delete => Command::Delete,
            Self::SetPriority(_) => Command::Update,
        }
    }
}

/// Which jobs.
#[derive(Clone, PartialEq, Debug)]
pub enum Which {
    /// These.
    Ids(Vec<JobId>),
    /// All that pass a filter, from a place on.
    Filter(JobFilter, Option<JobCursor>),
}

/// A command for many jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkCommand {
    /// What.
    pub action: BulkAction,
    /// For whom.
    pub which: Which,
    /// Only count what it would do.
    pub dry_run: bool,
}

/// A job that did not obey.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Which one.
    pub id: JobId,
    /// Why, in a word that is the same for all like it.
    pub reason: String,
    /// Why, in plain English.
    pub detail: String,
}

/// What a command for many jobs did, or would do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BulkOutcome {
    /// How many were looked at.
    pub matched: u64,
    /// How many obeyed, or would.
    pub done: u64,
    /// How many did not, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The first of those.
    pub refusals: Vec<Refusal>,
    /// Where to go on, if there was no time for all.
    pub next: Option<JobCursor>,
}

impl BulkOutcome {
    fn refuse(&mut self, id: JobId, reason: String, detail: String) {
        *self.refused.entry(reason.clone()).or_default() += 1;
        if self.refusals.len() < REFUSALS_TOLD_MAX {
            self.refusals.push(Refusal { id, reason, detail });
        }
    }

    fn not_found(&mut self, id: JobId) {
        self.refuse(id, "not_found".into(), CommandError::NotFound.to_string());
    }

    fn not_allowed(&mut self, id: JobId, refusal: &NotAllowed) {
        let reason = format!("not_allowed_while_{}", refusal.status.as_str());
        self.refuse(id, reason, refusal.to_string());
    }
}

impl Jobs {
    /// Has many jobs obey a command, a batch at a time, each job on its own. By filter, it goes on
    /// as long as `has_time` says so, and then tells where to go on.
    pub async fn command_many(
        &self,
        scope: &Scope,
        command: &BulkCommand,
        has_time: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<BulkOutcome, CommandError> {
        let mut outcome = BulkOutcome::default();
        match &command.which {
            Which::Ids(ids) => {
                for ids in ids.chunks(BATCH as usize) {
                    let found = self.store.get_jobs(scope, ids).await?;
                    let mut jobs: BTreeMap<JobId, Job> =
                        found.into_iter().map(|job| (job.id, job)).collect();
                    outcome.matched += ids.len() as u64;
                    let mut known = Vec::with_capacity(jobs.len());
                    for id in ids {
                        match jobs.remove(id) {
                            Some(job) => known.push(job),
                            None => outcome.not_found(*id),
                        }
                    }
                    self.command_batch(scope, command, known, &mut outcome).await?;
                }
            }
            Which::Filter(filter, from) => {
                let mut after = *from;
                loop {
                    // In the order of their creation, which no command changes: nobody is passed
                    // over, and nobody comes twice.
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
    ) -> Result<(), CommandError> {
        if command.dry_run {
            for job in jobs {
                match job.facts().apply(command.action.command()) {
                    Ok(_) => outcome.done += 1,
                    Err(refusal) => outcome.not_allowed(job.id, &refusal),
                }
            }
            return Ok(());
        }
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let obeyed = match command.action {
            BulkAction::Pause => self.ask(scope, &ids, Ask::Pause, None).await,
            BulkAction::Resume => self.ask(scope, &ids, Ask::Resume, None).await,
            BulkAction::Cancel => self.ask(scope, &ids, Ask::Cancel, None).await,
            BulkAction::Retry => self.ask(scope, &ids, Ask::Retry, None).await,
            BulkAction::Delete => self.ask(scope, &ids, Ask::Delete, None).await,
            BulkAction::SetPriority(priority) => self.recount_load(scope, jobs, priority).await,
        };
        let obeyed = obeyed.map_err(|error| error.after(outcome.done > 0))?;
        for (id, obeyed) in ids.into_iter().zip(obeyed) {
            match obeyed {
                Applied::Done(_) => outcome.done += 1,
                Applied::NotFound => outcome.not_found(id),
                Applied::NotAllowed(refusal) => outcome.not_allowed(id, &refusal),
                Applied::Stale(job) => {
                    let detail = CommandError::Stale { generation: job.generation }.to_string();
                    outcome.refuse(id, "changed_meanwhile".into(), detail);
                }
                Applied::NameTaken(other) => {
                    let detail = CommandError::NameTaken { id: other }.to_string();
                    outcome.refuse(id, "name_taken".into(), detail);
                }
                Applied::Duplicate(other) => {
                    let detail = CommandError::Duplicate { id: other }.to_string();
                    outcome.refuse(id, "duplicate".into(), detail);
                }
            }
        }
        Ok(())
    }

    /// Gives jobs another weight; those that change meanwhile are looked at again.
    async fn recount_load(
        &self,
        scope: &Scope,
        jobs: Vec<Job>,
        priority: Priority,
    ) -> Result<Vec<Applied>, CommandError> {
        let mut answers: Vec<Applied> =
            jobs.into_iter().map(|job| Applied::Stale(Box::new(job))).collect();
        for _ in 0..TRIES {
            let (mut places, mut orders) = (Vec::new(), Vec::new());
            for (place, answer) in answers.iter().enumerate() {
                if let Applied::Stale(job) = answer {
                    places.push(place);
                    orders.push(priority_command(job, priority));
                }
            }
            if orders.is_empty() {
                break;
            }
            let is_done = answers.iter().any(|answer| matches!(answer, Applied::Done(_)));
            let obeyed = self.store.apply_commands(scope, orders, Now::Database).await;
            let obeyed = obeyed.map_err(|error| CommandError::from(error).after(is_done))?;
            for (place, obeyed) in places.into_iter().zip(obeyed) {
                answers[place] = obeyed;
            }
        }
        let done = answers.iter().filter_map(|answer| match answer {
            Applied::Done(done) => done.job.as_ref().map(|job| job.id),
            _ => None,
        });
        let done: Vec<JobId> = done.collect();
        if !done.is_empty() {
            self.announce(Signal::Jobs).await;
            self.tell(scope, EventKind::JobUpdated, &done).await;
        }
        Ok(answers)
    }
}

/// What was read of a job holds only as long as it is that.
pub(crate) fn priority_command(job: &Job, priority: Priority) -> JobCommand {
    let definition = Definition { priority, ..job.definition.clone() };
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    JobCommand {
        id: job.id,
        if_generation: Some(job.generation),
        if_fired: None,
        action: Action::Change(Box::new(change)),
    }
}
