//! Counts the runs of a period per step.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::balance::{Loads, Measure};
use evenkeel_core::timeline::{Density, Outcomes, Outlook};
use evenkeel_core::{Slot, Span, Timestamp};

use super::future::FutureStarts;
use super::marks::FoundMarks;
use super::{Mark, MarkStatus, Request};
use crate::{Balancing, Result, Runs};

/// Number of time slots of activity in one read; a period has fewer.
const SLOTS_READ: u32 = 1_000;
/// Maximum number of start times of a job that are visited one by one.
const STARTS_VISITED_MAX: usize = 10_000;
const TICK: Span = Span::from_micros(1);

/// The runs of all jobs of a tenant per step.
pub(super) struct TenantDensity {
    pub(super) density: Density,
    /// The past time slots in which fired runs are counted: the first, and the first after them.
    pub(super) past_slots: (Slot, Slot),
    pub(super) outlook: Outlook,
}

/// Returns true if the run of this mark was fired in one of the time slots.
pub(super) fn was_fired_in(mark: &Mark, (first, end): (Slot, Slot)) -> bool {
    let is_skipped = mark.status == MarkStatus::Run(AttemptStatus::Skipped);
    (first..end).contains(&Slot::of(mark.scheduled_at)) && !is_skipped
}

impl Runs {
    /// Counts the past runs of a tenant from its activity, and expected runs from the forecast.
    pub(super) async fn tenant_density(
        &self,
        request: Request<'_>,
        balancing: &Balancing,
    ) -> Result<TenantDensity> {
        let Request { scope, period, now, .. } = request;
        // Activity is counted per time slot, a forecast may have shorter time slots.
        let is_future = period.from() >= now;
        let forecast =
            if period.to() > now { Some(balancing.own_loads(scope, now).await?) } else { None };
        let finest = forecast.as_ref().filter(|_| is_future).map(|loads| loads.horizon().slot);
        let mut density = Density::new(period, finest.unwrap_or(Slot::LENGTH), now);
        let (first, end) = period.past_slots(now);
        let mut outlook = Outlook::default();
        if !is_future {
            density.know_past_from(Timestamp::MIN);
            let (from, until) =
                (Slot::of(period.from()), Slot::of(density.end().saturating_sub(TICK)).next());
            let slots = self.store.list_activity(scope, from, until, SLOTS_READ).await?;
            for found in slots {
                density.add_ended(found.slot.start(), Outcomes::from(&found.counts));
                if (first..end).contains(&found.slot) {
                    outlook.fired += found.counts.fired;
                }
            }
        }
        if let Some(loads) = forecast {
            add_forecast(&mut density, &mut outlook, &loads, request);
        }
        Ok(TenantDensity { density, past_slots: (first, end), outlook })
    }
}

fn add_forecast(density: &mut Density, outlook: &mut Outlook, loads: &Loads, request: Request<'_>) {
    let Request { period, now, .. } = request;
    let horizon = loads.horizon();
    let start = |nth: u64| horizon.start.saturating_add(horizon.slot.saturating_mul(nth));
    density.know_future_until(start(horizon.slots as u64));
    let slots = loads.by_slot(Measure::Runs).into_iter().zip(loads.by_slot(Measure::Next));
    for (nth, (runs, jobs)) in (0..).zip(slots) {
        let (start, end) = (start(nth), start(nth + 1));
        density.add_expected(start, end, runs);
        outlook.expected += runs * period.future_share(start, end, now);
        let before_end = period.to().min(end).since(start).as_micros();
        outlook.jobs += jobs * before_end as f64 / end.since(start).as_micros() as f64;
    }
}

/// Counts the runs of one job: past runs from its history, future runs from its schedule.
pub(super) fn of_job(request: Request<'_>, found: &FoundMarks) -> Density {
    let Request { period, now, .. } = request;
    let mut density = Density::new(period, TICK, now);
    // Runs are listed newest first.
    let oldest = found.runs.iter().map(|mark| mark.scheduled_at).min();
    let attempts = found.job.as_ref().map_or(0, |job| job.executions);
    // The history may no longer have the older runs.
    let has_all = found.has_all_runs && attempts <= found.runs.len() as u64;
    let known_from = if has_all { Some(Timestamp::MIN) } else { oldest };
    density.know_past_from(known_from.unwrap_or(now));
    for mark in &found.runs {
        let outcome = match mark.status {
            MarkStatus::Run(status) => status.outcome(),
            MarkStatus::Expected => None,
        };
        if let (Some(outcome), Some(end)) = (outcome, mark.end) {
            density.add_ended(end, Outcomes::from(outcome));
        }
    }
    if let Some(job) = &found.job {
        let from = period.from().max(now);
        let until = density.end();
        let (counts, known_until) =
            count_starts(FutureStarts::new(job, from, now), &density, until);
        density.know_future_until(known_until);
        for (start, count) in counts {
            density.add_expected(start, start.saturating_add(TICK), count as f64);
        }
    }
    density
}

/// Returns numbers of starts, each at the time of the first of them, and the time until which all
/// starts are counted.
fn count_starts(
    mut starts: FutureStarts<'_>,
    density: &Density,
    until: Timestamp,
) -> (Vec<(Timestamp, u64)>, Timestamp) {
    let step = density.step().as_micros().cast_signed();
    let mut counts = Vec::new();
    for _ in 0..STARTS_VISITED_MAX {
        let Some((start, _)) = starts.next().filter(|(start, _)| start.at < until) else {
            return (counts, until);
        };
        // The other starts of the same step need not be visited one by one.
        let step_start = start.at.as_micros().div_euclid(step) * step;
        let step_end = Timestamp::from_micros(step_start + step);
        let others = starts.skip_before(step_end).unwrap_or(0);
        counts.push((start.at, 1 + others));
    }
    let known_until = counts.last().map_or(until, |(last, _)| *last);
    (counts, known_until)
}
