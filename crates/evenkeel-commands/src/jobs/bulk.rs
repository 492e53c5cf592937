//! Many new jobs at once.

use evenkeel_core::JobId;
use evenkeel_store::{EventKind, NewJob, Now, Registered, Scope, Signal, StoreError};
use serde_json::Value;

use super::Jobs;
use super::create::{Made, settled};
use super::tell::tell_at;
use crate::balance::Occasion;
use crate::{CommandError, Fault, JobSpec, read_job};

/// Jobs that are created in one transaction when many come at once. Each counts for a rhythm, and
/// those that share one are counted together: the more jobs, the less of that.
pub const BULK_BATCH: usize = 2500;

/// A job that was asked for among many.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Its id.
    pub id: JobId,
    /// It was there already; `None` if nobody wanted that looked at.
    pub deduplicated: Option<bool>,
}

impl Jobs {
    /// Reads the document of a new job.
    pub fn read(&self, scope: &Scope, document: &Value) -> Result<JobSpec, Vec<Fault>> {
        read_job(document, scope.tenant, &*self.executors)
    }

    /// Creates several jobs, and answers in their order. None of them keeps another from being
    /// created. All that fire share a transaction; each that is paused from the start has its own.
    pub async fn create_each(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Result<Registration, CommandError>>, StoreError> {
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

    async fn create_one_paused(
        &self,
        scope: &Scope,
        mut spec: JobSpec,
    ) -> Result<Registration, CommandError> {
        let targets = self.targets_of(scope, [&spec.about]).await?;
        self.aim(scope, &mut spec.about, &mut spec.definition, &targets)?;
        let Made { job, deduplicated, .. } = self.create_paused(scope, spec).await?;
        Ok(Registration { id: job.id, deduplicated })
    }

    async fn create_active(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Result<Registration, CommandError>>, StoreError> {
        let now = self.store.now().await?;
        let mut answers: Vec<Result<Registration, CommandError>> = Vec::with_capacity(specs.len());
        let mut jobs: Vec<NewJob> = Vec::with_capacity(specs.len());
        let placing = self.balance.placing(scope, now, Occasion::New).await?;
        let mut placing = placing.in_bulk(true);
        let targets = self.targets_of(scope, specs.iter().map(|spec| &spec.about)).await?;
        let secrets = self.secrets_of(scope, specs.iter().map(|spec| &spec.definition)).await?;
        for mut spec in specs {
            let id = self.fresh_id(now);
            let checked = secrets.check(&spec.definition);
            let aimed = checked
                .and_then(|()| self.aim(scope, &mut spec.about, &mut spec.definition, &targets));
            let choose = |job: &_, after| placing.first(id, job, after);
            let job = aimed.and_then(|()| settled(spec, id, now, choose));
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
        match self.store.register(scope, jobs.clone(), Now::At(now)).await {
            Ok(registered) => {
                for (answer, registered) in made.zip(registered) {
                    settle(answer, Some(registered));
                }
            }
            // One of them may have spoilt it for the others.
            Err(error) if !error.is_outage() && jobs.len() > 1 => {
                let mut outage: Option<StoreError> = None;
                for (answer, job) in made.zip(jobs) {
                    if let Some(outage) = &outage {
                        // What was created before the outage is known, and stays known.
                        *answer = Err(outage.for_another().into());
                        continue;
                    }
                    match self.store.register(scope, vec![job], Now::At(now)).await {
                        Ok(registered) => {
                            settle(answer, registered.first().copied());
                        }
                        Err(error) => {
                            outage = error.is_outage().then(|| error.for_another());
                            *answer = Err(error.into());
                        }
                    }
                }
            }
            Err(error) => return Err(error),
        }
        let known = answers.iter().filter_map(|answer| answer.as_ref().ok());
        let (old, new): (Vec<&Registration>, Vec<&Registration>) =
            known.partition(|one| one.deduplicated == Some(true));
        metrics::counter!("evenkeel_deduplicated_total").increment(old.len() as u64);
        let made = new.into_iter().map(|one| one.id);
        made.clone().for_each(|id| placing.keep(id));
        self.announce(Signal::Jobs).await;
        tell_at(&*self.store, scope, EventKind::JobCreated, made, now);
        Ok(answers)
    }
}

/// What became of a job, told in place of what was hoped.
fn settle(answer: &mut Result<Registration, CommandError>, registered: Option<Registered>) {
    match registered {
        Some(Registered::NameTaken(id)) => *answer = Err(CommandError::NameTaken { id }),
        Some(Registered::Duplicate(id)) => {
            *answer = Ok(Registration { id, deduplicated: Some(true) });
        }
        Some(Registered::Created { .. }) | None => {}
    }
}
