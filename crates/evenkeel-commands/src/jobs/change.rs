//! Commands: they change something, and wake whoever waits for it.

use evenkeel_core::job::Bounds;
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::Timetable;
use evenkeel_core::{AttemptKey, Definition, JobId, Timestamp};
use evenkeel_store::{EventKind, Job, Now, Registered, Scope, Signal, Store, Trigger, Triggered};
use serde_json::Value;

use super::Jobs;
use super::create::{Made, TRIES, settled};
use crate::balance::{Occasion, is_chosen};
use crate::{CommandError, Conflict, Fault, JobSpec, read_job};

/// What became of one job of a batch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Created {
    /// It has this id.
    New(JobId),
    /// Another job has its name and configuration: this one.
    NameTaken(JobId),
    /// It is there already, as this one.
    Duplicate(JobId),
}

/// A run that was asked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its job.
    pub job: JobId,
    /// The key of its first attempt.
    pub key: AttemptKey,
}

/// What became of a run that was asked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// It will run.
    New(Accepted),
    /// There is one already, of this job or of another with the same key.
    There {
        /// Whose it is.
        job: JobId,
        /// The key of its first attempt; a paused job may have none to show.
        key: Option<AttemptKey>,
    },
}

impl Jobs {
    /// Creates the job that `document` describes, in one transaction with all others that are
    /// created at the time. Answers with the job as it was then, or with the one that has its key.
    pub async fn create(&self, scope: &Scope, document: &Value) -> Result<Job, CommandError> {
        self.create_or_find(scope, document).await.map(|made| made.job)
    }

    /// The same, and says whether it was there before.
    pub async fn create_or_find(
        &self,
        scope: &Scope,
        document: &Value,
    ) -> Result<Made, CommandError> {
        let mut spec =
            read_job(document, scope.tenant, &*self.executors).map_err(CommandError::Invalid)?;
        let targets = self.targets_of(scope, [&spec.about]).await?;
        self.aim(scope, &mut spec.about, &mut spec.definition, &targets)?;
        self.secrets_of(scope, [&spec.definition]).await?.check(&spec.definition)?;
        if spec.enabled {
            self.creator.create(scope, spec).await
        } else {
            self.create_paused(scope, spec).await
        }
    }

    /// Makes a job that is paused from the start.
    pub(super) async fn create_paused(
        &self,
        scope: &Scope,
        spec: JobSpec,
    ) -> Result<Made, CommandError> {
        let now = self.store.now().await?;
        let id = self.fresh_id(now);
        let new = settled(spec, id, now, |job, after| job.timetable().first_after(after))?;
        let is_keyed = new.about.dedup.is_some();
        let mut in_the_way = id;
        for _ in 0..TRIES {
            match self.store.register_paused(scope, new.clone(), Now::At(now)).await? {
                Registered::Created { .. } => {
                    self.tell(scope, EventKind::JobCreated, &[id]).await;
                    let (job, now) = self.get_with_now(scope, id).await?;
                    return Ok(Made { job, now, deduplicated: is_keyed.then_some(false) });
                }
                Registered::NameTaken(id) => return Err(CommandError::NameTaken { id }),
                Registered::Duplicate(other) => {
                    in_the_way = other;
                    if let Some((job, now)) = self.store.get_with_now(scope, other).await? {
                        metrics::counter!("evenkeel_deduplicated_total").increment(1);
                        return Ok(Made { job, now, deduplicated: Some(true) });
                    }
                }
            }
        }
        Err(CommandError::Duplicate { id: in_the_way })
    }

    /// Creates several jobs in one transaction, and answers in their order. One whose name is
    /// taken does not keep the others from being created; one that could never run does.
    pub async fn create_many(
        &self,
        scope: &Scope,
        specs: Vec<JobSpec>,
    ) -> Result<Vec<Created>, CommandError> {
        let now = self.store.now().await?;
        let mut ids = Vec::with_capacity(specs.len());
        let mut jobs = Vec::with_capacity(specs.len());
        let placing = self.balance.placing(scope, now, Occasion::New).await?;
        let mut placing = placing.in_bulk(true);
        let targets = self.targets_of(scope, specs.iter().map(|spec| &spec.about)).await?;
        let secrets = self.secrets_of(scope, specs.iter().map(|spec| &spec.definition)).await?;
        for mut spec in specs {
            secrets.check(&spec.definition)?;
            self.aim(scope, &mut spec.about, &mut spec.definition, &targets)?;
            let id = self.fresh_id(now);
            let job = settled(spec, id, now, |job, after| placing.first(id, job, after))?;
            ids.push(id);
            jobs.push(job);
        }
        let registered = self.store.register(scope, jobs, Now::Database).await?;
        self.announce(Signal::Jobs).await;
        let created = registered.into_iter().zip(ids).map(|(registered, id)| match registered {
            Registered::Created { .. } => Created::New(id),
            Registered::NameTaken(other) => Created::NameTaken(other),
            Registered::Duplicate(other) => Created::Duplicate(other),
        });
        let created: Vec<Created> = created.collect();
        let new = created.iter().filter_map(|created| match created {
            Created::New(id) => Some(*id),
            Created::NameTaken(_) | Created::Duplicate(_) => None,
        });
        new.clone().for_each(|id| placing.keep(id));
        self.tell(scope, EventKind::JobCreated, &new.collect::<Vec<_>>()).await;
        Ok(created)
    }

    /// Asks for a run now, beside the schedule, with a priority of its own if one is given.
    pub async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Option<Priority>,
    ) -> Result<Accepted, CommandError> {
        match self.trigger_or_find(scope, id, priority).await? {
            Asked::New(accepted) => Ok(accepted),
            Asked::There { job, .. } => Err(CommandError::Duplicate { id: job }),
        }
    }

    /// The same, but that a run that is there already will do.
    pub async fn trigger_or_find(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Option<Priority>,
    ) -> Result<Asked, CommandError> {
        self.request_run(scope, id, priority, false).await
    }

    /// Asks for a run now of a job of which nothing waits or runs; else it is
    /// [busy](Conflict::Busy), whatever its overlap policy allows.
    pub(crate) async fn trigger_idle(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Accepted, CommandError> {
        match self.request_run(scope, id, None, true).await? {
            Asked::New(accepted) => Ok(accepted),
            Asked::There { job, .. } => Err(CommandError::Duplicate { id: job }),
        }
    }

    async fn request_run(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Option<Priority>,
        idle_only: bool,
    ) -> Result<Asked, CommandError> {
        // Only the low bits count; they tell triggers of one microsecond apart.
        let ask = Trigger { n: self.chance.bits() as u32, priority, idle_only };
        match self.store.trigger(scope, id, ask, Now::Database).await? {
            Triggered::Accepted(key) => {
                self.announce(Signal::Jobs).await;
                self.tell_requested(scope, id, key).await;
                Ok(Asked::New(Accepted { job: id, key }))
            }
            Triggered::Duplicate { job, run } => {
                metrics::counter!("evenkeel_deduplicated_total").increment(1);
                Ok(Asked::There { job, key: run })
            }
            Triggered::NotFound => Err(CommandError::NotFound),
            Triggered::Busy => Err(CommandError::Conflict(Conflict::Busy)),
            Triggered::NotAllowed(refusal) => Err(CommandError::NotAllowed(refusal)),
        }
    }

    pub(crate) async fn announce(&self, signal: Signal) {
        announce(&*self.store, signal).await;
    }
}

/// Wakes whoever waits. What was committed stays committed if nobody hears it, because those
/// who wait also poll; so a failure here is no failure of the command.
pub(crate) async fn announce(store: &dyn Store, signal: Signal) {
    if let Err(error) = store.announce(signal).await {
        tracing::warn!(
            signal.name = signal.as_str(),
            error = &error as &dyn std::error::Error,
            "nobody was woken; they will find the change by polling",
        );
    }
}

/// Why a job that is created at `now` would never run.
pub(crate) fn no_time_left(definition: &Definition, now: Timestamp) -> Fault {
    let endless = Timetable {
        bounds: Bounds { end_at: None, ..definition.bounds },
        ..definition.timetable()
    };
    match (definition.bounds.end_at, endless.first_after(now)) {
        (Some(end), Some(_)) if is_chosen(definition) => {
            Fault::new("end_at", format!("it would never run: its end, {end}, is before its start"))
        }
        (Some(end), Some(first)) => Fault::new(
            "end_at",
            format!("it would never run: its first time is {first}, after its end, {end}"),
        ),
        _ => Fault::new(
            "schedule",
            "its first run would be after the year 2112; choose an earlier one",
        ),
    }
}
