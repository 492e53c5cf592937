//! Jobs that follow their targets: whoever names one and neither an address nor an executor crawls
//! its address, also another one from when the target has it.

use std::collections::{BTreeSet, HashMap};

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, Definition, JobId, JobNo};
use evenkeel_store::{
    Action, Applied, COMMANDS_MAX, EventKind, Job, JobChange, JobCommand, Now, Scope, Signal,
    StoreError,
};

use super::Jobs;
use crate::document::executor_config;
use crate::{CommandError, Fault};

/// Jobs that are told of an address in one transaction.
const TOGETHER: u32 = 100;
/// So many steps of that somebody waits for; the rest is done behind their back.
const AWAITED_STEPS: usize = 5;
/// So often a job is told anew because somebody else changed it meanwhile.
const TRIES: usize = 8;
/// What a configuration is checked with as long as a target has no address.
const STAND_IN: &str = "https://example.com/";

/// The addresses of targets that are there.
pub(super) type Urls = HashMap<i64, Option<String>>;

/// What became of those that follow a target.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Led {
    /// So many were given another address, or lost it.
    pub followed: u64,
    /// So many do not go with the address, or would have a key that another job holds: they keep what
    /// they had.
    pub refused: u64,
    /// There are more, who are told from now on.
    pub goes_on: bool,
}

impl Jobs {
    /// The addresses of those targets that these jobs name.
    pub(crate) async fn targets_of<'a>(
        &self,
        scope: &Scope,
        abouts: impl IntoIterator<Item = &'a About>,
    ) -> Result<Urls, StoreError> {
        let numbers: BTreeSet<i64> = abouts.into_iter().filter_map(|about| about.target).collect();
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let mut found = Urls::new();
        for some in numbers.chunks(COMMANDS_MAX) {
            found.extend(self.store.target_urls(scope, some).await?);
        }
        Ok(found)
    }

    /// Looks whether a job's target is there, and lets one that follows it have what it says. What
    /// the target cannot say yet is checked nevertheless: nobody is there when it does.
    pub(crate) fn aim(
        &self,
        scope: &Scope,
        about: &mut About,
        definition: &mut Definition,
        targets: &Urls,
    ) -> Result<(), CommandError> {
        let Some(number) = about.target else { return Ok(()) };
        let of = |field: &str, message: String| {
            Err(CommandError::Invalid(vec![Fault::new(field, message)]))
        };
        let Some(url) = targets.get(&number) else {
            let message = format!("there is no target {number}; POST /api/v1/targets makes one");
            return of("target", message);
        };
        if !about.is_follower() {
            return Ok(());
        }
        let executor = self.executors.catalog().for_urls();
        let kinds = self.executors.kinds();
        let Some((kind, start)) = executor.filter(|(kind, _)| kinds.iter().any(|it| it == kind))
        else {
            let message = "is missing: this server can't crawl what the target says";
            return of("executor_type", message.into());
        };
        let bare = definition.executor.config.clone();
        let config = start.add(bare.clone(), Some(url.as_deref().unwrap_or(STAND_IN)));
        let checked = self.executors.check(scope.tenant, kind, &config, &definition.payload);
        if let Err((field, message)) = checked {
            return of(&field, message);
        }
        about.url.clone_from(url);
        definition.executor = match url {
            Some(_) => ExecutorSpec { kind: kind.into(), config },
            None => ExecutorSpec { kind: ExecutorSpec::NONE.into(), config: bare },
        };
        Ok(())
    }

    /// The same for a job that is changed; `to_aim` if it follows a target otherwise than before.
    pub(super) async fn aim_change(
        &self,
        scope: &Scope,
        job: &Job,
        change: &mut JobChange,
        to_aim: bool,
    ) -> Result<(), CommandError> {
        let about = change.about.as_ref().unwrap_or(&job.about);
        // What is named already need not be there any more.
        let is_named = about.target.is_none() || about.target == job.about.target;
        if is_named && !to_aim {
            return Ok(());
        }
        let targets = self.targets_of(scope, [about]).await?;
        let mut about = about.clone();
        let mut definition = change.definition.clone().unwrap_or_else(|| job.definition.clone());
        self.aim(scope, &mut about, &mut definition, &targets)?;
        change.definition = (definition != job.definition).then_some(definition);
        change.about = Some(about);
        Ok(())
    }

    /// Tells the jobs that follow a target what it says now: a few hundred at once, more of them
    /// later. Whoever is interrupted begins anew; nothing is written for those who know it.
    pub(super) async fn lead_followers(
        &self,
        scope: &Scope,
        number: i64,
    ) -> Result<Led, CommandError> {
        let (mut led, mut after) = (Led::default(), None);
        for _ in 0..AWAITED_STEPS {
            let step = self.lead_some(scope, number, after, &mut led).await;
            after = step.map_err(|error| error.after(led.followed > 0))?;
            if after.is_none() {
                return Ok(led);
            }
        }
        led.goes_on = true;
        let (jobs, scope) = (self.clone(), *scope);
        tokio::spawn(async move {
            let mut rest = Led::default();
            while after.is_some() {
                after = match jobs.lead_some(&scope, number, after, &mut rest).await {
                    Ok(after) => after,
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            target.number = number,
                            error,
                            "not all jobs know what their target says; change it once more"
                        );
                        return;
                    }
                };
            }
            if rest.refused > 0 {
                tracing::warn!(
                    target.number = number,
                    jobs.count = rest.refused,
                    "{} more jobs do not go with what their target says, and keep what they had",
                    rest.refused
                );
            }
        });
        Ok(led)
    }

    /// Tells some of them, after `after`. Says where to go on, unless there are no more.
    async fn lead_some(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        led: &mut Led,
    ) -> Result<Option<JobNo>, CommandError> {
        let some = self.store.jobs_of_target(scope, number, after, TOGETHER).await?;
        let Some((last, _)) = some.last() else { return Ok(None) };
        let ids: Vec<JobId> = some.iter().map(|(_, id)| *id).collect();
        let mut jobs = self.store.get_jobs(scope, &ids).await?;
        for _ in 0..TRIES {
            // Read after the jobs: whoever changes it later than this changes them later as well,
            // and then theirs is the generation that counts.
            let urls = self.store.target_urls(scope, &[number]).await?;
            let mut orders = Vec::new();
            for job in jobs.iter().filter(|job| job.about.is_follower()) {
                match self.led(scope, job, &urls) {
                    Ok(change) => orders.extend(change.map(|change| order(job, change))),
                    Err(CommandError::Invalid(_)) => led.refused += 1,
                    Err(error) => return Err(error),
                }
            }
            if orders.is_empty() {
                break;
            }
            let asked: Vec<JobId> = orders.iter().map(|order| order.id).collect();
            let obeyed = self.store.apply_commands(scope, orders, Now::Database).await?;
            self.announce(Signal::Jobs).await;
            let (mut done, mut again) = (Vec::new(), Vec::new());
            for (id, obeyed) in asked.into_iter().zip(obeyed) {
                match obeyed {
                    Applied::Done(_) => done.push(id),
                    Applied::Stale(job) => again.push(*job),
                    // One that is gone or over needs no address.
                    Applied::NotFound | Applied::NotAllowed(_) => {}
                    // With the address comes another executor, and with that another key.
                    Applied::NameTaken(holder) | Applied::Duplicate(holder) => {
                        led.refused += 1;
                        tracing::warn!(
                            job.id = %id,
                            target.number = number,
                            "job {id} keeps what it had, though its target has another url: job \
                             {holder} holds the key that it would have"
                        );
                    }
                }
            }
            led.followed += done.len() as u64;
            self.tell(scope, EventKind::JobUpdated, &done).await;
            jobs = again;
        }
        Ok((some.len() == TOGETHER as usize).then_some(*last))
    }

    /// What changes of a job that follows its target; nothing, if it knows what that says.
    fn led(
        &self,
        scope: &Scope,
        job: &Job,
        urls: &Urls,
    ) -> Result<Option<JobChange>, CommandError> {
        let mut about = About { url: None, ..job.about.clone() };
        let config = executor_config(&job.about, &job.definition, self.executors.catalog());
        let executor = ExecutorSpec { kind: ExecutorSpec::NONE.into(), config };
        let mut definition = Definition { executor, ..job.definition.clone() };
        self.aim(scope, &mut about, &mut definition, urls)?;
        let about = (about != job.about).then_some(about);
        let definition = (definition != job.definition).then_some(definition);
        let changes = about.is_some() || definition.is_some();
        Ok(changes.then_some(JobChange { about, definition, next_at: None }))
    }
}

fn order(job: &Job, change: JobChange) -> JobCommand {
    let action = Action::Change(Box::new(change));
    JobCommand { id: job.id, if_generation: Some(job.generation), if_fired: None, action }
}
