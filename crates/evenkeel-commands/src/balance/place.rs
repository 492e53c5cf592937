//! Chooses the first run time of a new or rescheduled job, so that runs are spread evenly over
//! time.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::balance::{JobToPlace, Load, LoadProfile, Loads, Measure, first_time};
use evenkeel_core::{Definition, JobId, Span, TenantNo, Timestamp};
use evenkeel_store::{Job, JobState, Scope, StoreError};

use super::loads::{JobLoad, Reserved};
use super::{Balance, has_chosen_times};
use crate::feed::instant_now;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PlacementReason {
    New,
    /// Jobs that are resumed or get a new schedule.
    Rescheduled,
}

/// The start times that are chosen within one transaction. Dropping a `Placing` removes the chosen
/// start times that are not confirmed from the cached load.
pub(crate) struct Placing {
    balance: Arc<Balance>,
    tenant: TenantNo,
    reason: PlacementReason,
    /// True if many jobs are created at once, so that each chosen start time is logged at debug
    /// level only.
    is_bulk: bool,
    placed: HashMap<JobId, Placed>,
}

struct Placed {
    reservation: u64,
    at: Timestamp,
    /// Number of runs in the time slot of the chosen start time; `None` if the choice is not
    /// logged.
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

    /// Chooses the first run time of a job after the time `after`. `before` is the present job if
    /// it is resumed or gets a new `definition`, and `None` for a new job.
    pub(crate) fn choose(
        &mut self,
        id: JobId,
        definition: &Definition,
        before: Option<&Job>,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let by_schedule = || definition.timetable().first_after(after);
        if !has_chosen_times(definition) {
            return by_schedule();
        }
        let is_logged = self.is_logged();
        let average = before.and_then(|job| job.history.average_good_duration);
        let removed = before.and_then(present_load);
        let mut inner = self.balance.inner();
        let Some((own, all, turn)) = inner.loads(self.tenant) else { return by_schedule() };
        let began = instant_now();
        // The job's load at its present start time is removed before a new start time is chosen.
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
        let (kind, message) = match self.reason {
            PlacementReason::New => ("new", "placed new job"),
            PlacementReason::Rescheduled => ("reschedule", "chose a new start time for the job"),
        };
        metrics::counter!("scheduler_placements_total", "type" => kind).increment(1);
        let Some(load) = load else { return };
        let slot = self.balance.settings.slot.as_micros().max(1).cast_signed();
        let slot = Timestamp::from_micros(at.as_micros() - at.as_micros().rem_euclid(slot));
        if self.is_bulk {
            tracing::debug!(job_id = %id, slot = %slot, load, "{message}");
        } else {
            tracing::info!(job_id = %id, slot = %slot, load, "{message}");
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

fn present_load(job: &Job) -> Option<JobLoad> {
    let next = job.next_at.filter(|_| job.state == JobState::Active)?;
    let load = Load::of(&job.definition, job.history.average_good_duration, next)?;
    Some((LoadProfile::of(&job.definition, next)?, load.cost))
}

/// Returns the number of expected runs in the time slot that contains `time`, or 0 if `time` is
/// after the period that `loads` covers.
fn runs_at(loads: &Loads, time: Timestamp) -> f64 {
    let horizon = loads.horizon();
    let slot = time.since(horizon.start).as_micros() / horizon.slot.as_micros().max(1);
    let slot = usize::try_from(slot).unwrap_or(usize::MAX);
    loads.by_slot(Measure::Runs).get(slot).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
