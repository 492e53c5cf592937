//! Decides how many steps of a rebalance plan are worth making, within the requested limits.

use std::collections::BTreeMap;

use super::PlanBounds;
use super::state::PlanState;
use crate::balance::load_profile::LoadProfile;
use crate::balance::loads::{Loads, Measure};
use crate::balance::spread::Granularity;
use crate::time::Span;

/// Number of intermediate states of a plan for which evenness scores are computed.
const STOPS: usize = 32;
/// Differences between two evenness scores are ignored if they are smaller than this value.
const BETTER: f64 = 1e-9;
/// The last steps of a plan are dropped if they improve the evenness of cost, or of runs over the
/// whole balancing horizon, by less than this value.
const BARELY: f64 = 0.002;

/// The state of the load after the first `steps` steps of a plan.
#[derive(Clone)]
struct Stop {
    steps: usize,
    loads: Loads,
    /// The evenness of runs.
    runs: f64,
    /// The evenness of cost.
    cost: f64,
    /// The evenness of runs over the whole balancing horizon.
    week: f64,
}

impl PlanState<'_> {
    /// Returns how many steps of the rebalance plan to make: the fewest steps that are as good as
    /// all steps, or that reach the requested limits.
    pub fn steps_worth(&self, own: &Loads, bounds: PlanBounds) -> usize {
        let all = bounds.max_moves.map_or(self.steps.len(), |most| self.steps_within(most));
        let start = Stop::at(0, own.clone());
        let mut stops = vec![start];
        for stop in 1..=STOPS {
            let steps = self.whole_steps(all * stop / STOPS);
            let last = &stops[stops.len() - 1];
            if steps > last.steps {
                stops.push(self.extend(last, steps));
            }
        }
        let target = bounds.target_score.unwrap_or(f64::INFINITY);
        if let Some(reached) = stops.iter().position(|stop| stop.runs >= target) {
            return self.first(&stops, reached, |stop| stop.runs >= target);
        }
        let runs = stops.iter().map(|stop| stop.runs).fold(0.0, f64::max) - BETTER;
        let even = || stops.iter().filter(|stop| stop.runs >= runs);
        let week = even().map(|stop| stop.week).fold(0.0, f64::max) - BARELY;
        let cost = even().map(|stop| stop.cost).fold(0.0, f64::max) - BARELY;
        let is_best = |it: &Stop| it.runs >= runs && it.week >= week && it.cost >= cost;
        // If no number of steps is best in all three scores, the plan has the largest number of
        // steps with the best evenness of runs.
        let last = || stops.iter().rposition(|stop| stop.runs >= runs);
        match stops.iter().position(is_best) {
            Some(best) => self.first(&stops, best, is_best),
            None => last().map_or(0, |last| stops[last].steps),
        }
    }

    /// Finds the smallest sufficient number of steps by binary search. `stops[reached]` has enough
    /// steps, and `stops[reached - 1]` has too few.
    fn first(&self, stops: &[Stop], reached: usize, suffices: impl Fn(&Stop) -> bool) -> usize {
        if reached == 0 {
            return stops[0].steps;
        }
        let (mut short, mut enough) = (stops[reached - 1].clone(), stops[reached].steps);
        loop {
            let middle = self.whole_steps(short.steps.midpoint(enough));
            if middle <= short.steps || middle >= enough {
                return enough;
            }
            let stop = self.extend(&short, middle);
            if suffices(&stop) {
                enough = middle;
            } else {
                short = stop;
            }
        }
    }

    /// Returns `steps`, or one less if the last step would be only the first half of a swap.
    fn whole_steps(&self, steps: usize) -> usize {
        let is_half = steps > 0 && self.steps[steps - 1].is_half;
        if is_half { steps - 1 } else { steps }
    }

    /// Returns how many steps of the plan can be made so that at most `most` jobs are moved.
    fn steps_within(&self, most: u64) -> usize {
        let mut at: Vec<u32> = self.movers.iter().map(|mover| mover.home).collect();
        let mut moved = 0;
        for (made, step) in self.steps.iter().enumerate() {
            let mover = step.mover as usize;
            let home = self.movers[mover].home;
            let was_moved = std::mem::replace(&mut at[mover], step.to) != home;
            moved = moved + u64::from(step.to != home) - u64::from(was_moved);
            if moved > most {
                return self.whole_steps(made);
            }
        }
        self.steps.len()
    }

    fn extend(&self, from: &Stop, steps: usize) -> Stop {
        let mut changes: BTreeMap<(u32, u32), (i64, i64)> = BTreeMap::new();
        let mut change = |class: u32, cell: u32, jobs: i64, cost: u64| {
            let sums = changes.entry((class, cell)).or_default();
            sums.0 += jobs;
            let cost = i64::try_from(cost).unwrap_or(i64::MAX);
            sums.1 = sums.1.saturating_add(jobs.saturating_mul(cost));
        };
        for step in &self.steps[from.steps..steps] {
            let mover = &self.movers[step.mover as usize];
            change(mover.class, step.from, -1, mover.cost);
            change(mover.class, step.to, 1, mover.cost);
        }
        let mut loads = from.loads.clone();
        for ((class, cell), (jobs, cost)) in changes {
            let profile = self.classes.classes[class as usize].profile_of(cell);
            change_load(&mut loads, &profile, jobs, cost);
        }
        Stop::at(steps, loads)
    }
}

/// Adds jobs and their cost to the load; negative numbers remove jobs and cost.
pub(super) fn change_load(loads: &mut Loads, profile: &LoadProfile, jobs: i64, cost: i64) {
    // Jobs and cost are added separately, so that the total cost of several jobs does not count as
    // the cost of one run.
    let (count, micros) = (jobs.unsigned_abs(), Span::from_micros(cost.unsigned_abs()));
    if jobs < 0 {
        loads.remove(profile, count, Span::ZERO);
    } else if jobs > 0 {
        loads.add(profile, count, Span::ZERO);
    }
    if cost < 0 {
        loads.remove(profile, 0, micros);
    } else if cost > 0 {
        loads.add(profile, 0, micros);
    }
}

impl Stop {
    fn at(steps: usize, loads: Loads) -> Self {
        let score = |measure| loads.spread(measure, Granularity::Slot).score;
        let (runs, cost) = (score(Measure::Runs), score(Measure::Cost));
        let week = evenness(&loads.by_slot(Measure::Runs));
        Self { steps, loads, runs, cost, week }
    }
}

/// Returns the share of the load that does not exceed the average per time slot. Unlike the
/// evenness score, the returned share does not consider which load a rebalance can move.
fn evenness(loads: &[f64]) -> f64 {
    let total: f64 = loads.iter().sum();
    let level = (total / loads.len().max(1) as f64 - 1e-6).ceil();
    let over: f64 = loads.iter().map(|load| (load - level).max(0.0)).sum();
    if total > 0.0 { 1.0 - over / total } else { 1.0 }
}
