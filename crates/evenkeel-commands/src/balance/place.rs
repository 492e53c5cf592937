//! Placing jobs: which time they get when they are created, or begin anew.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_core::balance::{Load, LoadProfile, Loads, Measure, ToPlace, first_time};
use evenkeel_core::{Definition, JobId, Span, TenantNo, Timestamp};
use evenkeel_store::{Job, JobState, Scope, StoreError};

use super::loads::{Burden, Reserved, instant_now};
use super::{Balance, is_chosen};

/// Why jobs are placed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Occasion {
    /// They are new.
    New,
    /// They go on after a pause, or with another schedule.
    Again,
}

/// Jobs that are being placed in one transaction. What is not kept by the end is taken back.
pub(crate) struct Placing {
    balance: Arc<Balance>,
    tenant: TenantNo,
    occasion: Occasion,
    /// Many come together: nobody reads a line about each.
    is_bulk: bool,
    placed: HashMap<JobId, Placed>,
}

struct Placed {
    reservation: u64,
    at: Timestamp,
    /// Runs in the slot, if somebody wants to know.
    load: Option<f64>,
}

impl Balance {
    /// Begins to place jobs of the scope at `now`.
    pub(crate) async fn placing(
        self: &Arc<Self>,
        scope: &Scope,
        now: Timestamp,
        occasion: Occasion,
    ) -> Result<Placing, StoreError> {
        self.prepare(scope.tenant, now).await?;
        let (balance, tenant) = (Arc::clone(self), scope.tenant);
        Ok(Placing { balance, tenant, occasion, is_bulk: false, placed: HashMap::new() })
    }
}

impl Placing {
    /// Many jobs come together.
    pub(crate) fn in_bulk(mut self, is_bulk: bool) -> Self {
        self.is_bulk = is_bulk;
        self
    }

    /// The first time after `after` of a new job.
    pub(crate) fn first(
        &mut self,
        id: JobId,
        definition: &Definition,
        after: Timestamp,
    ) -> Option<Timestamp> {
        self.choose(id, definition, None, None, after)
    }

    /// The first time after `after` of a job that begins anew, as `definition` says from now on.
    pub(crate) fn again(
        &mut self,
        job: &Job,
        definition: &Definition,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let average = job.history.average_good_duration;
        let counted = job.next_at.filter(|_| job.state == JobState::Active);
        let leaves = counted.and_then(|next| {
            let load = Load::of(&job.definition, average, next)?;
            Some((LoadProfile::of(&job.definition, next)?, load.cost))
        });
        self.choose(job.id, definition, average, leaves, after)
    }

    fn choose(
        &mut self,
        id: JobId,
        definition: &Definition,
        average: Option<Span>,
        leaves: Option<Burden>,
        after: Timestamp,
    ) -> Option<Timestamp> {
        let plain = || definition.timetable().first_after(after);
        if !is_chosen(definition) {
            return plain();
        }
        let tells = self.tells();
        let mut inner = self.balance.inner();
        let Some((own, all, turn)) = inner.loads(self.tenant) else { return plain() };
        let began = instant_now();
        // Where it is now, it is in nobody's way but its own.
        if let Some((rhythm, cost)) = &leaves {
            own.remove(rhythm, 1, *cost);
            all.remove(rhythm, 1, *cost);
        }
        let load = Load::of(definition, average, after);
        let cost = load.map_or(Span::ZERO, |load| load.cost);
        let job = ToPlace { definition, seed: id.seed(), cost, after };
        let at = first_time(&self.balance.settings, job, own, all, turn);
        let rhythm = at.and_then(|at| LoadProfile::of(definition, at));
        let (Some(at), Some(rhythm)) = (at, rhythm) else {
            if let Some((rhythm, cost)) = &leaves {
                own.add(rhythm, 1, *cost);
                all.add(rhythm, 1, *cost);
            }
            return at;
        };
        own.add(&rhythm, 1, cost);
        all.add(&rhythm, 1, cost);
        metrics::histogram!("scheduler_placement_duration_seconds").record(began.elapsed());
        let load = tells.then(|| runs_at(own, at));
        let reserved = Reserved { tenant: self.tenant, takes: (rhythm, cost), leaves };
        let placed = Placed { reservation: inner.reserve(reserved), at, load };
        // Whoever is placed twice has the later place.
        if let Some(before) = self.placed.insert(id, placed) {
            inner.take_back(before.reservation);
        }
        Some(at)
    }

    fn tells(&self) -> bool {
        if self.is_bulk {
            tracing::enabled!(tracing::Level::DEBUG)
        } else {
            tracing::enabled!(tracing::Level::INFO)
        }
    }

    /// A job has its place for good, if it was given one.
    pub(crate) fn keep(&mut self, id: JobId) {
        let Some(Placed { reservation, at, load }) = self.placed.remove(&id) else { return };
        self.balance.inner().commit(reservation);
        let kind = match self.occasion {
            Occasion::New => "new",
            Occasion::Again => "reschedule",
        };
        metrics::counter!("scheduler_placements_total", "type" => kind).increment(1);
        let Some(load) = load else { return };
        let slot = self.balance.slot_of(at);
        match (self.occasion, self.is_bulk) {
            (Occasion::New, false) => {
                tracing::info!(job_id = %id, slot = %slot, load, "placed new job");
            }
            (Occasion::New, true) => {
                tracing::debug!(job_id = %id, slot = %slot, load, "placed new job");
            }
            (Occasion::Again, false) => {
                tracing::info!(job_id = %id, slot = %slot, load, "placed job afresh");
            }
            (Occasion::Again, true) => {
                tracing::debug!(job_id = %id, slot = %slot, load, "placed job afresh");
            }
        }
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if !self.placed.is_empty() {
            let mut inner = self.balance.inner();
            self.placed.drain().for_each(|(_, placed)| inner.take_back(placed.reservation));
        }
    }
}

impl Balance {
    /// Where the slot begins that a time lies in.
    fn slot_of(&self, time: Timestamp) -> Timestamp {
        let slot = self.settings.slot.as_micros().max(1).cast_signed();
        Timestamp::from_micros(time.as_micros() - time.as_micros().rem_euclid(slot))
    }
}

/// How many runs the slot of a time holds; none that is known if it lies beyond what is counted.
fn runs_at(loads: &Loads, time: Timestamp) -> f64 {
    let horizon = loads.horizon();
    let slot = time.since(horizon.start).as_micros() / horizon.slot.as_micros().max(1);
    let slot = usize::try_from(slot).unwrap_or(usize::MAX);
    loads.by_slot(Measure::Runs).get(slot).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
