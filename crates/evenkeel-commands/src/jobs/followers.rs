//! Jobs that follow a target: a job with a target but without a URL and an executor crawls the URL
//! of its target, and gets the new URL when the target changes.

use std::collections::{BTreeSet, HashMap};

use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::{About, Definition, JobId, JobNo};
use evenkeel_store::{
    Action, Applied, COMMANDS_MAX, EventKind, Job, JobChange, JobCommand, Now, Scope, Signal,
    StoreError,
};

use super::{Jobs, TRIES};
use crate::document::executor_config;
use crate::{CommandError, Fault, Result};

/// Number of jobs of a target that are updated per transaction.
const UPDATE_BATCH: u32 = 100;
/// Number of update transactions that a request waits for. The remaining jobs of the target are
/// updated in the background.
const AWAITED_BATCHES: usize = 5;
/// URL with which the configuration of a job is checked while its target has no URL.
const PLACEHOLDER_URL: &str = "https://example.com/";

/// URLs of existing targets by target number.
pub(super) type Urls = HashMap<i64, Option<String>>;

/// The result of updating the jobs that follow a target.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct FollowerUpdate {
    /// Number of jobs whose URL was changed or removed.
    pub followed: u64,
    /// Number of jobs that keep their former URL, because the new URL is not valid for the job or
    /// another job holds the new deduplication key.
    pub refused: u64,
    /// True if the remaining jobs are updated in the background.
    pub continues: bool,
}

impl Jobs {
    /// Returns the URLs of the targets that the jobs in `abouts` refer to.
    pub(crate) async fn target_urls_of<'a>(
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

    /// Checks that the target of a job exists, and sets the URL and the executor of a job that
    /// follows its target. While the target has no URL, the job's configuration is checked with a
    /// placeholder URL, because an error could not be reported to the client later.
    pub(crate) fn apply_target(
        &self,
        scope: &Scope,
        about: &mut About,
        definition: &mut Definition,
        targets: &Urls,
    ) -> Result<()> {
        let Some(number) = about.target else { return Ok(()) };
        let of = |field: &str, message: String| {
            Err(CommandError::Invalid(vec![Fault::new(field, message)]))
        };
        let Some(url) = targets.get(&number) else {
            let message =
                format!("there is no target {number}; create it with POST /api/v1/targets");
            return of("target", message);
        };
        if !about.is_follower() {
            return Ok(());
        }
        let executor = self.executors.catalog().for_urls();
        let kinds = self.executors.kinds();
        let Some((kind, start)) = executor.filter(|(kind, _)| kinds.iter().any(|it| it == kind))
        else {
            let message = "is missing: this server has no executor for the url of the target";
            return of("executor_type", message.into());
        };
        let bare = definition.executor.config.clone();
        let config = start.add(bare.clone(), Some(url.as_deref().unwrap_or(PLACEHOLDER_URL)));
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

    /// Sets the URL and the executor of a changed job that follows a target. `applies_target` is
    /// true if the changed job must get its URL and its executor from its target.
    pub(super) async fn apply_target_to_change(
        &self,
        scope: &Scope,
        job: &Job,
        change: &mut JobChange,
        applies_target: bool,
    ) -> Result<()> {
        let about = change.about.as_ref().unwrap_or(&job.about);
        // If the change keeps the target of the job, the target is not checked, because it may have
        // been deleted in the meantime.
        let is_named = about.target.is_none() || about.target == job.about.target;
        if is_named && !applies_target {
            return Ok(());
        }
        let targets = self.target_urls_of(scope, [about]).await?;
        let mut about = about.clone();
        let mut definition = change.definition.clone().unwrap_or_else(|| job.definition.clone());
        self.apply_target(scope, &mut about, &mut definition, &targets)?;
        change.definition = (definition != job.definition).then_some(definition);
        change.about = Some(about);
        Ok(())
    }

    /// Updates the URLs of the jobs that follow a target: the first 500 jobs before the function
    /// returns, the remaining jobs in the background. An interrupted update can be repeated; jobs
    /// that are already up to date are not written.
    pub(super) async fn update_followers(
        &self,
        scope: &Scope,
        number: i64,
    ) -> Result<FollowerUpdate> {
        let (mut update, mut after) = (FollowerUpdate::default(), None);
        for _ in 0..AWAITED_BATCHES {
            let step = self.update_some_followers(scope, number, after, &mut update).await;
            after = step.map_err(|error| error.after(update.followed > 0))?;
            if after.is_none() {
                return Ok(update);
            }
        }
        update.continues = true;
        let (jobs, scope) = (self.clone(), *scope);
        tokio::spawn(async move {
            let mut rest = FollowerUpdate::default();
            while after.is_some() {
                after = match jobs.update_some_followers(&scope, number, after, &mut rest).await {
                    Ok(after) => after,
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(
                            target.number = number,
                            error,
                            "some jobs of a target did not get its new url; change the target again to retry"
                        );
                        return;
                    }
                };
            }
            if rest.refused > 0 {
                tracing::warn!(
                    target.number = number,
                    jobs.count = rest.refused,
                    "the new url of the target is not valid for some of its jobs; they keep the old url"
                );
            }
        });
        Ok(update)
    }

    /// Updates one batch of the jobs that follow a target, starting after the job `after`. Returns
    /// the last job of the batch if more jobs may follow the target.
    async fn update_some_followers(
        &self,
        scope: &Scope,
        number: i64,
        after: Option<JobNo>,
        update: &mut FollowerUpdate,
    ) -> Result<Option<JobNo>> {
        let some = self.store.jobs_of_target(scope, number, after, UPDATE_BATCH).await?;
        let Some((last, _)) = some.last() else { return Ok(None) };
        let ids: Vec<JobId> = some.iter().map(|(_, id)| *id).collect();
        let mut jobs = self.store.get_jobs(scope, &ids).await?;
        for _ in 0..TRIES {
            // The URL of the target is read after the jobs. If the target changes later, the update
            // of that change increases the generation of the jobs, so the store refuses the old
            // URL.
            let urls = self.store.target_urls(scope, &[number]).await?;
            let mut commands = Vec::new();
            for job in jobs.iter().filter(|job| job.about.is_follower()) {
                match self.follower_change(scope, job, &urls) {
                    Ok(change) => commands.extend(change.map(|change| change_command(job, change))),
                    Err(CommandError::Invalid(_)) => update.refused += 1,
                    Err(error) => return Err(error),
                }
            }
            if commands.is_empty() {
                break;
            }
            let commanded: Vec<JobId> = commands.iter().map(|command| command.id).collect();
            let applied = self.store.apply_commands(scope, commands, Now::Database).await?;
            self.announce(Signal::Jobs).await;
            let (mut done, mut again) = (Vec::new(), Vec::new());
            for (id, applied) in commanded.into_iter().zip(applied) {
                match applied {
                    Applied::Done(_) => done.push(id),
                    Applied::Stale(job) => again.push(*job),
                    // A job that was deleted or has ended needs no URL.
                    Applied::NotFound | Applied::NotAllowed(_) => {}
                    // A new URL of the target can change the executor of the job, and therefore its
                    // deduplication key.
                    Applied::NameTaken(holder) | Applied::Duplicate(holder) => {
                        update.refused += 1;
                        tracing::warn!(
                            job.id = %id,
                            target.number = number,
                            holder.id = %holder,
                            "job keeps its old url: with the new url of its target, its deduplication key would equal that of another job"
                        );
                    }
                }
            }
            update.followed += done.len() as u64;
            self.publish(scope, EventKind::JobUpdated, &done).await;
            jobs = again;
        }
        Ok((some.len() == UPDATE_BATCH as usize).then_some(*last))
    }

    /// Returns the change that gives a job the URL of its target, or `None` if the job already has
    /// this URL.
    fn follower_change(&self, scope: &Scope, job: &Job, urls: &Urls) -> Result<Option<JobChange>> {
        let mut about = About { url: None, ..job.about.clone() };
        let config = executor_config(&job.about, &job.definition, self.executors.catalog());
        let executor = ExecutorSpec { kind: ExecutorSpec::NONE.into(), config };
        let mut definition = Definition { executor, ..job.definition.clone() };
        self.apply_target(scope, &mut about, &mut definition, urls)?;
        let about = (about != job.about).then_some(about);
        let definition = (definition != job.definition).then_some(definition);
        let changes = about.is_some() || definition.is_some();
        Ok(changes.then_some(JobChange { about, definition, next_at: None }))
    }
}

/// Builds a command that is applied only if the job has not changed since it was read.
pub(crate) fn change_command(job: &Job, change: JobChange) -> JobCommand {
    let action = Action::Change(Box::new(change));
    JobCommand { id: job.id, if_generation: Some(job.generation), if_fired: None, action }
}
