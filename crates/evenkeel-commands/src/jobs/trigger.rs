//! Creates and triggers jobs, and signals the nodes that a run is due.

use evenkeel_core::job::Bounds;
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::Timetable;
use evenkeel_core::{AttemptKey, Definition, JobId, Timestamp};
use evenkeel_store::{EventKind, Now, Registered, Scope, Signal, Store, Trigger, Triggered};
use serde_json::Value;

use super::Jobs;
use super::create::{CreatedJob, TRIES, prepare_job};
use crate::balance::has_chosen_times;
use crate::{CommandError, Conflict, Fault, JobSpec, Result};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TriggerResult {
    /// Key of the first attempt of the new run.
    New(AttemptKey),
    /// A run of this job, or of another job with the same deduplication key, already exists.
    Existing {
        job: JobId,
        /// Key of the existing run's first attempt; `None` for a paused job without a run.
        key: Option<AttemptKey>,
    },
}

impl Jobs {
    /// Creates the job that `document` describes, or returns the existing job with the same
    /// deduplication key and marks it as deduplicated. Concurrent requests share a transaction.
    pub async fn create_or_find(&self, scope: &Scope, document: &Value) -> Result<CreatedJob> {
        let mut spec = self.read(scope, document).map_err(CommandError::Invalid)?;
        let targets = self.target_urls_of(scope, [&spec.about]).await?;
        self.apply_target(scope, &mut spec.about, &mut spec.definition, &targets)?;
        self.secrets_of(scope, [&spec.definition]).await?.check(&spec.definition)?;
        if spec.enabled {
            self.create_shared(scope, spec).await
        } else {
            self.create_paused(scope, spec).await
        }
    }

    pub(super) async fn create_paused(&self, scope: &Scope, spec: JobSpec) -> Result<CreatedJob> {
        let now = self.store.now().await?;
        let id = self.new_id(now);
        let new = prepare_job(spec, id, now, |job, after| job.timetable().first_after(after))?;
        let is_keyed = new.about.dedup.is_some();
        let mut holder = id;
        for _ in 0..TRIES {
            match self.store.register_paused(scope, new.clone(), Now::At(now)).await? {
                Registered::Created { .. } => {
                    self.publish(scope, EventKind::JobCreated, &[id]).await;
                    let (job, now) = self.get_with_now(scope, id).await?;
                    return Ok(CreatedJob { job, now, deduplicated: is_keyed.then_some(false) });
                }
                Registered::NameTaken(id) => return Err(CommandError::NameTaken { id }),
                Registered::Duplicate(other) => {
                    holder = other;
                    if let Some((job, now)) = self.store.get_with_now(scope, other).await? {
                        metrics::counter!("evenkeel_deduplicated_total").increment(1);
                        return Ok(CreatedJob { job, now, deduplicated: Some(true) });
                    }
                }
            }
        }
        Err(CommandError::Duplicate { id: holder })
    }

    /// Starts a run now, in addition to the scheduled runs, or returns the existing run with the
    /// same deduplication key. `priority`, if given, replaces the priority of the job for this run.
    /// If `idle_only` is true and the job has an active run, returns [`Conflict::Busy`], whatever
    /// the overlap policy of the job is.
    pub async fn request_run(
        &self,
        scope: &Scope,
        id: JobId,
        priority: Option<Priority>,
        idle_only: bool,
    ) -> Result<TriggerResult> {
        // The random number `n` distinguishes triggers of the same job in the same microsecond.
        let trigger = Trigger { n: self.chance.bits() as u32, priority, idle_only };
        match self.store.trigger(scope, id, trigger, Now::Database).await? {
            Triggered::Accepted(key) => {
                self.announce(Signal::Jobs).await;
                self.publish_requested(scope, id, key).await;
                Ok(TriggerResult::New(key))
            }
            Triggered::Duplicate { job, run } => {
                metrics::counter!("evenkeel_deduplicated_total").increment(1);
                Ok(TriggerResult::Existing { job, key: run })
            }
            Triggered::NotFound => Err(CommandError::NotFound),
            Triggered::Busy => Err(Conflict::Busy.into()),
            Triggered::NotAllowed(refusal) => Err(refusal.into()),
        }
    }

    pub(crate) async fn announce(&self, signal: Signal) {
        announce(&*self.store, signal).await;
    }
}

/// Notifies all nodes that jobs or runs have changed. A failed notification is only logged, because
/// nodes also poll for committed changes.
pub(crate) async fn announce(store: &dyn Store, signal: Signal) {
    if let Err(error) = store.announce(signal).await {
        tracing::warn!(
            signal.name = signal.as_str(),
            error = &error as &dyn std::error::Error,
            "could not notify the nodes of a change; they find the change by polling",
        );
    }
}

/// Returns the fault to report for a job that would never run if it were created at `now`.
pub(crate) fn no_time_left(definition: &Definition, now: Timestamp) -> Fault {
    let bounds = Bounds { end_at: None, ..definition.bounds };
    let endless = Timetable { bounds, ..definition.timetable() };
    match (definition.bounds.end_at, endless.first_after(now)) {
        (Some(end), Some(_)) if has_chosen_times(definition) => {
            Fault::new("end_at", format!("it would never run: its end, {end}, is before its start"))
        }
        (Some(end), Some(first)) => {
            let why = format!("its first time is {first}, after its end, {end}");
            Fault::new("end_at", format!("it would never run: {why}"))
        }
        _ => {
            let message = "its first run would be after the year 2112; choose an earlier one";
            Fault::new("schedule", message)
        }
    }
}
