//! The distribution of load over the next 24 hours, as numbers and as a sentence.

use std::sync::Arc;

use evenkeel_core::balance::{Granularity, Horizon, Loads, Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Scope;

use super::Balancing;
use crate::CommandError;

/// The largest number of slots in a list.
const LISTED_MAX: usize = 4096;

/// The load of a slot or an hour.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Share {
    /// The number of jobs whose next run is in the slot or hour.
    pub next: f64,
    pub runs: f64,
    /// The cost of the runs, in seconds.
    pub cost_seconds: f64,
}

impl Share {
    pub const fn of(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost_seconds,
        }
    }
}

/// How even the load is by each measure.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spreads {
    /// By the next runs of jobs.
    pub next: Spread,
    pub runs: Spread,
    pub cost: Spread,
}

impl Spreads {
    fn of(loads: &Loads, grain: Granularity) -> Self {
        Self {
            next: loads.spread(Measure::Next, grain),
            runs: loads.spread(Measure::Runs, grain),
            cost: loads.spread(Measure::Cost, grain),
        }
    }

    pub const fn by(&self, measure: Measure) -> Spread {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost,
        }
    }
}

/// The distribution of a tenant's load over the next 24 hours.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    pub as_of: Timestamp,
    pub jobs: u64,
    pub policy: Policy,
    /// The length of a slot.
    pub slot: Span,
    /// Start and load of each slot. Neighbouring slots are combined if there are more than
    /// [`LISTED_MAX`].
    pub slots: Vec<(Timestamp, Share)>,
    /// The length of each listed slot.
    pub listed: Span,
    /// Start of the slot with the highest cost.
    pub heaviest_at: Timestamp,
    /// The load of each hour of the day, UTC.
    pub hours: [Share; 24],
    pub by_slot: Spreads,
    pub by_hour: Spreads,
    /// How even the seconds are, by runs of jobs whose second is fixed.
    pub by_second: Option<Spread>,
    /// What a rebalance would gain, as a sentence.
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
    /// Returns the distribution of the scope's load.
    pub async fn distribution(&self, scope: &Scope) -> Result<Distribution, CommandError> {
        let now = self.balance.store.now().await?;
        let loads = Arc::new(self.own_loads(scope, now).await?);
        let suggestion = self.suggestion(scope, &loads, now).await?;
        let policy = self.balance.settings().policy;
        super::blocking(move || Distribution::new(&loads, policy, now, suggestion)).await
    }
}

fn start_of(horizon: Horizon, slot: usize) -> Timestamp {
    horizon.start.saturating_add(horizon.slot.saturating_mul(slot as u64))
}

/// Returns how many slots are combined so that a day has at most [`LISTED_MAX`].
fn combined(horizon: Horizon) -> usize {
    let day = horizon.day();
    (day.div_ceil(LISTED_MAX)..=day).find(|count| day.is_multiple_of(*count)).unwrap_or(1)
}

/// Returns the slots of the next 24 hours, `combined` slots in each entry.
fn slots_of(loads: &Loads, horizon: Horizon, combined: usize) -> Vec<(Timestamp, Share)> {
    let [next, runs, cost] =
        [Measure::Next, Measure::Runs, Measure::Cost].map(|measure| loads.by_slot(measure));
    let at = |values: &[f64], slot: usize| -> f64 { values.iter().skip(slot).take(combined).sum() };
    (0..horizon.day())
        .step_by(combined)
        .map(|slot| {
            let start = start_of(horizon, slot);
            let share = Share {
                next: at(&next, slot),
                runs: at(&runs, slot),
                cost_seconds: at(&cost, slot),
            };
            (start, share)
        })
        .collect()
}

pub(super) fn hours_of(loads: &Loads) -> [Share; 24] {
    let [next, runs, cost] =
        [Measure::Next, Measure::Runs, Measure::Cost].map(|measure| loads.by_hour(measure));
    std::array::from_fn(|hour| Share {
        next: next[hour],
        runs: runs[hour],
        cost_seconds: cost[hour],
    })
}
