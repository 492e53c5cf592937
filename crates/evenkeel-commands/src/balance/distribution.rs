//! How load is spread, in numbers and in words.

use std::sync::Arc;

use evenkeel_core::balance::{Grain, Horizon, Loads, Measure, Policy, Spread};
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Scope;

use super::Balancing;
use crate::CommandError;

/// So many slots are listed at most.
const LISTED_MAX: usize = 4096;

/// What lies in a slot or in an hour.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Share {
    /// Jobs that have their next run in it.
    pub next: f64,
    /// Runs.
    pub runs: f64,
    /// What those cost, in seconds.
    pub cost_seconds: f64,
}

impl Share {
    /// What is counted.
    pub const fn of(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost_seconds,
        }
    }
}

/// How even load is, by what is counted.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spreads {
    /// By jobs, where their next run is.
    pub next: Spread,
    /// By runs.
    pub runs: Spread,
    /// By what runs cost.
    pub cost: Spread,
}

impl Spreads {
    fn of(loads: &Loads, grain: Grain) -> Self {
        Self {
            next: loads.spread(Measure::Next, grain),
            runs: loads.spread(Measure::Runs, grain),
            cost: loads.spread(Measure::Cost, grain),
        }
    }

    /// By this.
    pub const fn by(&self, measure: Measure) -> Spread {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost,
        }
    }
}

/// How a tenant's load of the next 24 hours is spread.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    /// When it was looked at.
    pub as_of: Timestamp,
    /// Jobs that count.
    pub jobs: u64,
    /// How new jobs are placed.
    pub policy: Policy,
    /// How long a slot is.
    pub slot: Span,
    /// Where each slot begins, and what lies in it; several slots together if there are many.
    pub slots: Vec<(Timestamp, Share)>,
    /// How much time each of those covers.
    pub listed: Span,
    /// When the slot begins that costs the most.
    pub heaviest_at: Timestamp,
    /// What lies in each hour of the day, UTC.
    pub hours: [Share; 24],
    /// How even the slots are.
    pub by_slot: Spreads,
    /// How even the hours are.
    pub by_hour: Spreads,
    /// How even the seconds are, by runs of jobs whose second is known.
    pub by_second: Option<Spread>,
    /// What a rebalance would gain, in words.
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
            slots: slots_of(loads, horizon, together(horizon)),
            listed: horizon.slot.saturating_mul(together(horizon) as u64),
            heaviest_at: start_of(horizon, loads.spread(Measure::Cost, Grain::Slot).peak_at),
            hours: hours_of(loads),
            by_slot: Spreads::of(loads, Grain::Slot),
            by_hour: Spreads::of(loads, Grain::Hour),
            by_second: loads.spread_by_second(),
            suggestion,
        }
    }
}

impl Balancing {
    /// How the scope's load is spread.
    pub async fn distribution(&self, scope: &Scope) -> Result<Distribution, CommandError> {
        let now = self.balance.store.now().await?;
        let loads = Arc::new(self.own_loads(scope, now).await?);
        let suggestion = self.suggestion(scope, &loads, now).await?;
        let policy = self.balance.settings().policy;
        super::apart(move || Distribution::new(&loads, policy, now, suggestion)).await
    }
}

/// Where a slot begins.
fn start_of(horizon: Horizon, slot: usize) -> Timestamp {
    horizon.start.saturating_add(horizon.slot.saturating_mul(slot as u64))
}

/// How many slots are listed as one, so that a day has no more than [`LISTED_MAX`].
fn together(horizon: Horizon) -> usize {
    let day = horizon.day();
    (day.div_ceil(LISTED_MAX)..=day).find(|count| day.is_multiple_of(*count)).unwrap_or(1)
}

/// The slots of the next 24 hours, so many of them `together`.
fn slots_of(loads: &Loads, horizon: Horizon, together: usize) -> Vec<(Timestamp, Share)> {
    let [next, runs, cost] =
        [Measure::Next, Measure::Runs, Measure::Cost].map(|measure| loads.by_slot(measure));
    let at = |values: &[f64], slot: usize| -> f64 { values.iter().skip(slot).take(together).sum() };
    (0..horizon.day())
        .step_by(together)
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

/// The hours of the day.
pub(super) fn hours_of(loads: &Loads) -> [Share; 24] {
    let [next, runs, cost] =
        [Measure::Next, Measure::Runs, Measure::Cost].map(|measure| loads.by_hour(measure));
    std::array::from_fn(|hour| Share {
        next: next[hour],
        runs: runs[hour],
        cost_seconds: cost[hour],
    })
}
