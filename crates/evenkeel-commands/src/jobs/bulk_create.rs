//! Creates many jobs in one request.

use evenkeel_core::JobId;
use evenkeel_store::{EventKind, NewJob, Registered, Scope, Signal, StoreError};
use serde_json::Value;

use super::Jobs;
use super::create::{CreatedJob, prepare_job};
use super::publish::publish_at;
use crate::balance::PlacementReason;
use crate::{CommandError, Fault, JobSpec, Result, read_job};

/// Number of jobs per transaction of a bulk request. Jobs with the same load profile share one
/// counter update in a transaction, so larger transactions need fewer updates.
pub const BULK_BATCH: usize = 2500;

/// The result of creating one job of a bulk request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    pub id: JobId,
    /// True if a job with the same deduplication key already existed; `None` for a job without such
    /// a key.
    pub deduplicated: Option<bool>,
}

impl Jobs {
    pub fn read(&self, scope: &Scope, document: &Value) -> Result<JobSpec, Vec<Fault>> {
        read_job(document, scope.tenant, &*self.executors)
    }

    /// Creates many jobs and returns one result per job, in the order of `specs`. A refused job
    /// does not affect the other jobs. All enabled jobs are created in one transaction; each paused
    /// job is created in its own transaction.
    pub async fn create_each(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Result<Registration>>, StoreError> {
        let are_enabled: Vec<bool> = specs.iter().map(|spec| spec.enabled).collect();
        let (active, paused): (Vec<_>, Vec<_>) = specs.into_iter().partition(|spec| spec.enabled);
        let mut active = self.create_active(scope, active).await?.into_iter();
        let mut paused = paused.into_iter();
        let mut answers = Vec::with_capacity(are_enabled.len());
        for is_enabled in are_enabled {
            if is_enabled {
                answers.extend(active.next());
            } else if let Some(spec) = paused.next() {
                answers.push(self.create_one_paused(scope, spec).await);
            }
        }
        Ok(answers)
    }

    async fn create_one_paused(&self, scope: &Scope, mut spec: JobSpec) -> Result<Registration> {
        let targets = self.target_urls_of(scope, [&spec.about]).await?;
        self.apply_target(scope, &mut spec.about, &mut spec.definition, &targets)?;
        let CreatedJob { job, deduplicated, .. } = self.create_paused(scope, spec).await?;
        Ok(Registration { id: job.id, deduplicated })
    }

    async fn create_active(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Result<Registration>>, StoreError> {
        let now = self.store.now().await?;
        let mut answers: Vec<Result<Registration>> = Vec::with_capacity(specs.len());
        let mut jobs: Vec<NewJob> = Vec::with_capacity(specs.len());
        let placing = self.balance.placing(scope, now, PlacementReason::New).await?;
        let mut placing = placing.in_bulk(true);
        let targets = self.target_urls_of(scope, specs.iter().map(|spec| &spec.about)).await?;
        let secrets = self.secrets_of(scope, specs.iter().map(|spec| &spec.definition)).await?;
        for mut spec in specs {
            let id = self.new_id(now);
            let checked = secrets.check(&spec.definition);
            let with_target = checked.and_then(|()| {
                self.apply_target(scope, &mut spec.about, &mut spec.definition, &targets)
            });
            let choose = |job: &_, after| placing.choose(id, job, None, after);
            let job = with_target.and_then(|()| prepare_job(spec, id, now, choose));
            answers.push(job.map(|job| {
                let deduplicated = job.about.dedup.is_some().then_some(false);
                jobs.push(job);
                Registration { id, deduplicated }
            }));
        }
        if jobs.is_empty() {
            return Ok(answers);
        }
        let made = answers.iter_mut().filter(|answer| answer.is_ok());
        let registered = self.register_each(scope, &jobs, now).await?;
        for (answer, registered) in made.zip(registered) {
            match registered {
                Ok(Registered::Created { .. }) => {}
                Ok(Registered::Duplicate(id)) => {
                    *answer = Ok(Registration { id, deduplicated: Some(true) });
                }
                Ok(Registered::NameTaken(id)) => *answer = Err(CommandError::NameTaken { id }),
                Err(error) => *answer = Err(error.into()),
            }
        }
        let known = answers.iter().filter_map(|answer| answer.as_ref().ok());
        let (old, new): (Vec<&Registration>, Vec<&Registration>) =
            known.partition(|registration| registration.deduplicated == Some(true));
        metrics::counter!("evenkeel_deduplicated_total").increment(old.len() as u64);
        let made = new.into_iter().map(|registration| registration.id);
        made.clone().for_each(|id| placing.confirm(id));
        self.announce(Signal::Jobs).await;
        publish_at(&*self.store, scope, EventKind::JobCreated, made, now);
        Ok(answers)
    }
}
