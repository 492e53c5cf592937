//! How far a plan goes: as far as it gains something, and no further than was asked for.

use std::collections::BTreeMap;

use super::Wanted;
use super::improve::Board;
use crate::balance::loads::{Loads, Measure};
use crate::balance::rhythm::Rhythm;
use crate::balance::spread::{Grain, Spread};
use crate::time::Span;

/// Scores are looked at so many times on the way.
const STOPS: usize = 32;
/// A score this much better is better.
const BETTER: f64 = 1e-9;
/// The end of a plan is left out if cost gets more even by less than this.
const BARELY: f64 = 0.002;

/// A part of the steps of a plan, from the first on, and what it comes to.
#[derive(Clone)]
struct Stop {
    steps: usize,
    loads: Loads,
    runs: Spread,
    cost: Spread,
}

impl Board<'_> {
    /// How many of the steps are made: the fewest that come as far as all of them, or to what is
    /// wanted.
    pub fn steps_worth(&self, own: &Loads, wanted: Wanted) -> usize {
        let all = wanted.max_moves.map_or(self.steps.len(), |most| self.steps_within(most));
        let start = Stop::at(0, own.clone());
        let mut stops = vec![start];
        for stop in 1..=STOPS {
            let steps = self.whole_steps(all * stop / STOPS);
            let last = &stops[stops.len() - 1];
            if steps > last.steps {
                stops.push(self.go_on(last, steps));
            }
        }
        let target = wanted.target_score.unwrap_or(f64::INFINITY);
        if let Some(reached) = stops.iter().position(|stop| stop.runs.score >= target) {
            return self.first(&stops, reached, |stop| stop.runs.score >= target);
        }
        let most = |of: fn(&Stop) -> f64| stops.iter().map(of).fold(0.0, f64::max);
        let best_runs = most(|stop| stop.runs.score) - BETTER;
        let most_even = stops.iter().filter(|stop| stop.runs.score >= best_runs);
        let best_cost = most_even.map(|stop| stop.cost.score).fold(0.0, f64::max) - BARELY;
        let is_best = |stop: &Stop| stop.runs.score >= best_runs && stop.cost.score >= best_cost;
        let best = stops.iter().position(is_best).unwrap_or(0);
        self.first(&stops, best, is_best)
    }

    /// The fewest steps that will do, if those of `stops[reached]` do and those of the one before
    /// do not.
    fn first(&self, stops: &[Stop], reached: usize, will_do: impl Fn(&Stop) -> bool) -> usize {
        if reached == 0 {
            return stops[0].steps;
        }
        let (mut short, mut enough) = (stops[reached - 1].clone(), stops[reached].steps);
        loop {
            let middle = self.whole_steps(short.steps.midpoint(enough));
            if middle <= short.steps || middle >= enough {
                return enough;
            }
            let stop = self.go_on(&short, middle);
            if will_do(&stop) {
                enough = middle;
            } else {
                short = stop;
            }
        }
    }

    /// So many steps, or one less: none without its other half.
    fn whole_steps(&self, steps: usize) -> usize {
        let is_half = steps > 0 && self.steps[steps - 1].is_half;
        if is_half { steps - 1 } else { steps }
    }

    /// How many steps move no more than `most` jobs.
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

    fn go_on(&self, from: &Stop, steps: usize) -> Stop {
        let mut changes: BTreeMap<(u32, u32), (i64, i64)> = BTreeMap::new();
        let mut change = |class: u32, cell: u32, jobs: i64, cost: u64| {
            let sums = changes.entry((class, cell)).or_default();
            sums.0 += jobs;
            sums.1 += jobs * i64::try_from(cost).unwrap_or(i64::MAX);
        };
        for step in &self.steps[from.steps..steps] {
            let mover = &self.movers[step.mover as usize];
            change(mover.class, step.from, -1, mover.cost);
            change(mover.class, step.to, 1, mover.cost);
        }
        let mut loads = from.loads.clone();
        for ((class, cell), (jobs, cost)) in changes {
            let rhythm = self.classes.classes[class as usize].rhythm_of(cell);
            change_load(&mut loads, &rhythm, jobs, cost);
        }
        Stop::at(steps, loads)
    }
}

/// Adds jobs and cost, either of which may be less than nothing.
pub(super) fn change_load(loads: &mut Loads, rhythm: &Rhythm, jobs: i64, cost: i64) {
    // One after the other, so that nobody takes the sum of several jobs for the cost of one.
    let (count, micros) = (jobs.unsigned_abs(), Span::from_micros(cost.unsigned_abs()));
    if jobs < 0 {
        loads.remove(rhythm, count, Span::ZERO);
    } else if jobs > 0 {
        loads.add(rhythm, count, Span::ZERO);
    }
    if cost < 0 {
        loads.remove(rhythm, 0, micros);
    } else if cost > 0 {
        loads.add(rhythm, 0, micros);
    }
}

impl Stop {
    fn at(steps: usize, loads: Loads) -> Self {
        let runs = loads.spread(Measure::Runs, Grain::Slot);
        let cost = loads.spread(Measure::Cost, Grain::Slot);
        Self { steps, loads, runs, cost }
    }
}
