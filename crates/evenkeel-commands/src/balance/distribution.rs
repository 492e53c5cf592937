//! Reports how the runs of the next 24 hours are spread over time, as numbers and as a sentence.

use std::sync::Arc;

use evenkeel_core::balance::{Granularity, Horizon, Loads, Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Scope;

use super::Balancing;
use crate::Result;

/// Maximum number of entries in the list of time slots.
const LISTED_MAX: usize = 4096;
/// The ways to count runs.
const MEASURES: [Measure; 3] = [Measure::Next, Measure::Runs, Measure::Cost];

/// Numbers of expected runs in a time slot or an hour.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Share {
    /// Number of jobs whose next run falls into the time slot or hour.
    pub next: f64,
    pub runs: f64,
    /// Sum of the expected durations of the runs, in seconds.
    pub cost_seconds: f64,
}

impl Share {
    /// Creates a `Share` from its three values, in the order of [`MEASURES`].
    const fn new([next, runs, cost_seconds]: [f64; 3]) -> Self {
        Self { next, runs, cost_seconds }
    }

    pub const fn of(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost_seconds,
        }
    }
}

/// How evenly runs are spread over time, for each way to count runs.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spreads {
    /// Evenness if only the next run of each job is counted.
    pub next: Spread,
    pub runs: Spread,
    pub cost: Spread,
}

impl Spreads {
    fn of(loads: &Loads, grain: Granularity) -> Self {
        let [next, runs, cost] = MEASURES.map(|measure| loads.spread(measure, grain));
        Self { next, runs, cost }
    }

    pub const fn by(&self, measure: Measure) -> Spread {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost,
        }
    }
}

/// How the runs of a tenant's jobs are spread over the next 24 hours.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    pub as_of: Timestamp,
    pub jobs: u64,
    pub policy: Policy,
    /// Length of a time slot.
    pub slot: Span,
    /// Start and expected runs of each time slot. If there are more than [`LISTED_MAX`] time slots,
    /// neighbouring time slots are combined.
    pub slots: Vec<(Timestamp, Share)>,
    /// Length of the period that each entry of `slots` covers.
    pub listed: Span,
    /// Start of the time slot with the longest expected running time of its runs.
    pub heaviest_at: Timestamp,
    /// Expected runs of each hour of the day, in UTC.
    pub hours: [Share; 24],
    pub by_slot: Spreads,
    pub by_hour: Spreads,
    /// Evenness of the runs over the seconds of the next hour, for jobs whose start second is
    /// fixed.
    pub by_second: Option<Spread>,
    /// A sentence that tells what a rebalance would achieve.
    pub suggestion: String,
}

impl Distribution {
    fn new(loads: &Loads, policy: Policy, as_of: Timestamp, suggestion: String) -> Self {
        let horizon = loads.horizon();
        Self {
            as_of,
            jobs: loads.jobs(),
            policy,
            slot: horizon.slot,
            slots: slots_of(loads, horizon, combined(horizon)),
            listed: horizon.slot.saturating_mul(combined(horizon) as u64),
            heaviest_at: start_of(horizon, loads.spread(Measure::Cost, Granularity::Slot).peak_at),
            hours: hours_of(loads),
            by_slot: Spreads::of(loads, Granularity::Slot),
            by_hour: Spreads::of(loads, Granularity::Hour),
            by_second: loads.spread_by_second(),
            suggestion,
        }
    }
}

impl Balancing {
    pub async fn distribution(&self, scope: &Scope) -> Result<Distribution> {
        let now = self.balance.store.now().await?;
        let loads = Arc::new(self.own_loads(scope, now).await?);
        let suggestion = self.suggestion(scope, &loads, now).await?;
        let policy = self.balance.settings().policy;
        Ok(super::blocking(move || Distribution::new(&loads, policy, now, suggestion)).await?)
    }
}

fn start_of(horizon: Horizon, slot: usize) -> Timestamp {
    horizon.start.saturating_add(horizon.slot.saturating_mul(slot as u64))
}

/// Returns the number of neighbouring time slots per list entry, so that 24 hours have at most
/// [`LISTED_MAX`] entries.
fn combined(horizon: Horizon) -> usize {
    let day = horizon.day();
    (day.div_ceil(LISTED_MAX)..=day).find(|count| day.is_multiple_of(*count)).unwrap_or(1)
}

/// Returns the time slots of the next 24 hours, with `combined` time slots in each entry.
fn slots_of(loads: &Loads, horizon: Horizon, combined: usize) -> Vec<(Timestamp, Share)> {
    let all = MEASURES.map(|measure| loads.by_slot(measure));
    let slots = (0..horizon.day()).step_by(combined).map(|slot| {
        let sum = |values: &Vec<f64>| values.iter().skip(slot).take(combined).sum();
        (start_of(horizon, slot), Share::new(all.each_ref().map(sum)))
    });
    slots.collect()
}

pub(super) fn hours_of(loads: &Loads) -> [Share; 24] {
    let all = MEASURES.map(|measure| loads.by_hour(measure));
    std::array::from_fn(|hour| Share::new(all.map(|values| values[hour])))
}
