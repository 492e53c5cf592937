//! Many new jobs at once.

use evenkeel_core::JobId;
use evenkeel_store::{EventKind, NewJob, Now, Registered, Scope, Signal, StoreError};
use serde_json::Value;

use super::Jobs;
use super::create::settled;
use super::tell::tell_at;
use crate::balance::Occasion;
use crate::{CommandError, Fault, JobSpec, read_job};

/// Jobs that are created in one transaction when many come at once. Each counts for a rhythm, and
/// those that share one are counted together: the more jobs, the less of that.
pub const BULK_BATCH: usize = 2500;

impl Jobs {
    /// Reads the document of a new job.
    pub fn read(&self, scope: &Scope, document: &Value) -> Result<JobSpec, Vec<Fault>> {
        read_job(document, scope.tenant, &*self.executors)
    }

    /// Creates several jobs in one transaction, and answers in their order. None of them keeps
    /// another from being created.
    pub async fn create_each(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Result<JobId, CommandError>>, StoreError> {
        let now = self.store.now().await?;
        let mut answers: Vec<Result<JobId, CommandError>> = Vec::with_capacity(specs.len());
        let mut jobs: Vec<NewJob> = Vec::with_capacity(specs.len());
        let placing = self.balance.placing(scope, now, Occasion::New).await?;
        let mut placing = placing.in_bulk(true);
        let targets = self.targets_of(scope, specs.iter().map(|spec| &spec.about)).await?;
        for mut spec in specs {
            let id = self.fresh_id(now);
            let aimed = self.aim(scope, &mut spec.about, &mut spec.definition, &targets);
            let choose = |job: &_, after| placing.first(id, job, after);
            let job = aimed.and_then(|()| settled(spec, id, now, choose));
            answers.push(job.map(|job| {
                let id = job.id;
                jobs.push(job);
                id
            }));
        }
        if jobs.is_empty() {
            return Ok(answers);
        }
        let made = answers.iter_mut().filter(|answer| answer.is_ok());
        match self.store.register(scope, jobs.clone(), Now::At(now)).await {
            Ok(registered) => {
                for (answer, registered) in made.zip(registered) {
                    if let Registered::NameTaken(id) = registered {
                        *answer = Err(CommandError::NameTaken { id });
                    }
                }
            }
            // One of them may have spoilt it for the others.
            Err(error) if !error.is_outage() && jobs.len() > 1 => {
                let mut is_out = false;
                for (answer, job) in made.zip(jobs) {
                    if is_out {
                        // What was created before the outage is known, and stays known.
                        let why = "the store was lost in the middle of the batch";
                        *answer = Err(StoreError::Unavailable(why.into()).into());
                        continue;
                    }
                    match self.store.register(scope, vec![job], Now::At(now)).await {
                        Ok(registered) => {
                            if let Some(Registered::NameTaken(id)) = registered.first() {
                                *answer = Err(CommandError::NameTaken { id: *id });
                            }
                        }
                        Err(error) => {
                            is_out = error.is_outage();
                            *answer = Err(error.into());
                        }
                    }
                }
            }
            Err(error) => return Err(error),
        }
        let made = answers.iter().filter_map(|answer| answer.as_ref().ok().copied());
        made.clone().for_each(|id| placing.keep(id));
        self.announce(Signal::Jobs).await;
        tell_at(&*self.store, scope, EventKind::JobCreated, made, now);
        Ok(answers)
    }
}
