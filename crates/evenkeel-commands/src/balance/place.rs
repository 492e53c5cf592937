//! Chooses the first run time of a new or rescheduled job, so that runs are spread evenly over
//! time.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::balance::{JobToPlace, Load, LoadProfile, Loads, Measure, first_time};
use evenkeel_core::{Definition, JobId, Span, TenantNo, Timestamp};
use evenkeel_store::{Job, JobState, Scope, StoreError};

use super::loads::{JobLoad, Reserved, instant_now};
use super::{Balance, has_chosen_times};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PlacementReason {
    New,
    /// The jobs are resumed or get a new schedule.
    Rescheduled,
}

/// The start times that are chosen within one transaction. Start times that are not confirmed are
/// rolled back on drop.
pub(crate) struct Placing {
    balance: Arc<Balance>,
    tenant: TenantNo,
    reason: PlacementReason,
    /// True if many jobs are created at once; each chosen start time is then logged at debug level
    /// only.
    is_bulk: bool,
    placed: HashMap<JobId, Placed>,
}

struct Placed {
    reservation: u64,
    at: Timestamp,
    /// Number of runs in the chosen time slot; `None` if the choice is not logged.
    load: Option<f64>,
}

impl Balance {
    pub(crate) async fn placing(
        self: &Arc<Self>,
        scope: &Scope,
        now: Timestamp,
        reason: PlacementReason,
    ) -> Result<Placing, StoreError> {
        self.prepare(scope.tenant, now).await?;
        let (balance, tenant) = (Arc::clone(self), scope.tenant);
        Ok(Placing { balance, tenant, reason, is_bulk: false, placed: HashMap::new() })
    }
}

impl Placing {
    pub(crate) fn in_bulk(mut self, is_bulk: bool) -> Self {
        self.is_bulk = is_bulk;
        self
    }

    /// Chooses the first run time of a new job, after the time `after`.
    pub(crate) fn first(
        &mut self,
        id: JobId,
        definition: &Definition,
        after: Timestamp,
    ) -> Option<Timestamp> {
        self.choose(id, definition, None, None, after)
    }

    /// Chooses the next run time, after the time `after`, of a job that is resumed or gets a new
    /// `definition`.
    pub(crate) fn rescheduled(
        &mut self,
        job: &Job,
        definition: &Definition,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let average = job.history.average_good_duration;
        let counted = job.next_at.filter(|_| job.state == JobState::Active);
        let removed = counted.and_then(|next| {
            let load = Load::of(&job.definition, average, next)?;
            Some((LoadProfile::of(&job.definition, next)?, load.cost))
        });
        self.choose(job.id, definition, average, removed, after)
    }

    fn choose(
        &mut self,
        id: JobId,
        definition: &Definition,
        average: Option<Span>,
        removed: Option<JobLoad>,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let by_schedule = || definition.timetable().first_after(after);
        if !has_chosen_times(definition) {
            return by_schedule();
        }
        let is_logged = self.is_logged();
        let mut inner = self.balance.inner();
        let Some((own, all, turn)) = inner.loads(self.tenant) else { return by_schedule() };
        let began = instant_now();
        // The present runs of the job do not count when its new start time is chosen.
        if let Some((profile, cost)) = &removed {
            own.remove(profile, 1, *cost);
            all.remove(profile, 1, *cost);
        }
        let load = Load::of(definition, average, after);
        let cost = load.map_or(Span::ZERO, |load| load.cost);
        let job = JobToPlace { definition, seed: id.seed(), cost, after };
        let at = first_time(&self.balance.settings, job, own, all, turn);
        let profile = at.and_then(|at| LoadProfile::of(definition, at));
        let (Some(at), Some(profile)) = (at, profile) else {
            if let Some((profile, cost)) = &removed {
                own.add(profile, 1, *cost);
                all.add(profile, 1, *cost);
            }
            return at;
        };
        own.add(&profile, 1, cost);
        all.add(&profile, 1, cost);
        metrics::histogram!("scheduler_placement_duration_seconds").record(began.elapsed());
        let load = is_logged.then(|| runs_at(own, at));
        let reserved = Reserved { tenant: self.tenant, added: (profile, cost), removed };
        let placed = Placed { reservation: inner.reserve(reserved), at, load };
        // If a start time is chosen twice for one job, the later choice counts.
        if let Some(before) = self.placed.insert(id, placed) {
            inner.roll_back(before.reservation);
        }
        Some(at)
    }

    fn is_logged(&self) -> bool {
        if self.is_bulk {
            tracing::enabled!(tracing::Level::DEBUG)
        } else {
            tracing::enabled!(tracing::Level::INFO)
        }
    }

    /// Confirms the chosen start time of a job after its transaction was committed.
    pub(crate) fn confirm(&mut self, id: JobId) {
        let Some(Placed { reservation, at, load }) = self.placed.remove(&id) else { return };
        self.balance.inner().commit(reservation);
        let kind = match self.reason {
            PlacementReason::New => "new",
            PlacementReason::Rescheduled => "reschedule",
        };
        metrics::counter!("scheduler_placements_total", "type" => kind).increment(1);
        let Some(load) = load else { return };
        let slot = self.balance.slot_of(at);
        match (self.reason, self.is_bulk) {
            (PlacementReason::New, false) => {
                tracing::info!(job_id = %id, slot = %slot, load, "placed new job");
            }
            (PlacementReason::New, true) => {
                tracing::debug!(job_id = %id, slot = %slot, load, "placed new job");
            }
            (PlacementReason::Rescheduled, false) => {
                tracing::info!(job_id = %id, slot = %slot, load, "chose a new start time for the job");
            }
            (PlacementReason::Rescheduled, true) => {
                tracing::debug!(job_id = %id, slot = %slot, load, "chose a new start time for the job");
            }
        }
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if !self.placed.is_empty() {
            let mut inner = self.balance.inner();
            self.placed.drain().for_each(|(_, placed)| inner.roll_back(placed.reservation));
        }
    }
}

impl Balance {
    /// Returns the start of the time slot that contains a time.
    fn slot_of(&self, time: Timestamp) -> Timestamp {
        let slot = self.settings.slot.as_micros().max(1).cast_signed();
        Timestamp::from_micros(time.as_micros() - time.as_micros().rem_euclid(slot))
    }
}

/// Returns the number of runs in the time slot that contains `time`; 0 beyond the counted period.
fn runs_at(loads: &Loads, time: Timestamp) -> f64 {
    let horizon = loads.horizon();
    let slot = time.since(horizon.start).as_micros() / horizon.slot.as_micros().max(1);
    let slot = usize::try_from(slot).unwrap_or(usize::MAX);
    loads.by_slot(Measure::Runs).get(slot).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
