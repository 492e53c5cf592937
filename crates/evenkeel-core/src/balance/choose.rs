//! Which of its candidates a job gets.

use std::borrow::Cow;

use super::loads::Loads;
use super::place::{Candidates, Turn};

/// Where the fewest jobs have their next time.
pub(super) fn next(
    candidates: Candidates,
    own: &Loads,
    all: &Loads,
    turn: Turn,
    wanted: Option<&[bool]>,
) -> usize {
    let (own, all) = (own.next_of(candidates), all.next_of(candidates));
    let Some(wanted) = wanted else { return least(&own, &all, candidates, turn) };
    // What is not wanted is as if it were full.
    let only = |of: &[u32]| -> Vec<u32> {
        of.iter().zip(wanted).map(|(load, wanted)| if *wanted { *load } else { u32::MAX }).collect()
    };
    least(&only(&own), &only(&all), candidates, turn)
}

/// The least of `own`, then of `all`, then of this node's, then the first. Three plain passes: they
/// take a fraction of what one with a comparison of everything does.
fn least(own: &[u32], all: &[u32], candidates: Candidates, turn: Turn) -> usize {
    let own_least = own.iter().copied().fold(u32::MAX, u32::min);
    let both = || own.iter().zip(all);
    let all_least = both().fold(u32::MAX, |least, (own, all)| {
        least.min(if *own == own_least { *all } else { u32::MAX })
    });
    let mut best = both()
        .enumerate()
        .filter(|(_, (own, all))| **own == own_least && **all == all_least)
        .map(|(candidate, _)| candidate);
    if turn.of <= 1 {
        return best.next().unwrap_or(0);
    }
    first_of_mine(best, candidates, turn)
}

fn first_of_mine(
    mut best: impl Iterator<Item = usize>,
    candidates: Candidates,
    turn: Turn,
) -> usize {
    let Some(first) = best.next() else { return 0 };
    let is_mine = |candidate: usize| turn.is_mine(candidates.slot() + candidate as i64);
    if is_mine(first) { first } else { best.find(|it| is_mine(*it)).unwrap_or(first) }
}

/// Where all times of the job together meet the least load.
pub(super) fn projected(
    candidates: Candidates,
    own: &Loads,
    all: &Loads,
    turn: Turn,
    wanted: Option<&[bool]>,
) -> usize {
    let mut best: Vec<usize> = match wanted {
        None => (0..candidates.count).collect(),
        Some(wanted) => (0..candidates.count).filter(|it| wanted[*it]).collect(),
    };
    for loads in [own, all] {
        if best.len() > 1 {
            let met = loads.loads_of(candidates).met(candidates);
            let least = best.iter().map(|it| met[*it]).fold(f64::INFINITY, f64::min);
            best.retain(|it| met[*it] <= least);
        }
    }
    first_of_mine(best.into_iter(), candidates, turn)
}

/// The load of slots, one after the other; after the last comes the first again.
pub(super) struct Series {
    /// What lies in each.
    pub loads: Vec<f64>,
    /// The number of the first one, counted from the epoch.
    pub first: i64,
}

impl Series {
    /// What the times of each candidate meet: the sum of the squares of the loads of all slots that
    /// they hit. So a high peak counts for more than several low ones, and none for nothing.
    pub fn met(&self, candidates: Candidates) -> Vec<f64> {
        let (slots, unit) = (self.loads.len(), candidates.unit);
        let length = slots as i64 * unit;
        let times = (length / candidates.every).max(1);
        let mut met = vec![0.0; candidates.count];
        for nth in 0..times {
            let time = candidates.first + nth * candidates.every;
            let slot = (time.div_euclid(unit) - self.first).rem_euclid(slots as i64) as usize;
            let (before, after) = self.loads.split_at(slot);
            // Candidates lie in neighbouring slots.
            let (head, tail) = met.split_at_mut(after.len().min(candidates.count));
            head.iter_mut().zip(after).for_each(|(met, load)| *met += load * load);
            tail.iter_mut().zip(before).for_each(|(met, load)| *met += load * load);
        }
        met
    }
}

impl Loads {
    /// How many jobs have their next time where the candidates are.
    fn next_of(&self, candidates: Candidates) -> Cow<'_, [u32]> {
        let far = &self.far;
        if far.grid.slot == candidates.unit {
            let first = candidates.slot() - far.grid.start.div_euclid(far.grid.slot);
            let first = usize::try_from(first).ok();
            let known = first.and_then(|first| far.next.get(first..first + candidates.count));
            return known.map_or_else(|| vec![0; candidates.count].into(), Cow::Borrowed);
        }
        let (folded, first) = self.folded(&self.sums.next, candidates.unit);
        let first = candidates.slot() - first;
        let known = (first..).take(candidates.count).map(|slot| {
            let sum = usize::try_from(slot).ok().and_then(|slot| folded.get(slot));
            sum.map_or(0, |sum| u32::try_from(*sum).unwrap_or(u32::MAX))
        });
        known.collect()
    }

    /// What lies in slots as long as those of the candidates: what runs cost, and for each run as
    /// much as one costs on average. So many short ones and few long ones both count.
    pub(super) fn loads_of(&self, candidates: Candidates) -> Series {
        let each = self.average_cost();
        let weigh = |cost: i64, runs: i64| (cost as f64 + each * runs as f64).max(0.0);
        let horizon = self.horizon().grid();
        if candidates.unit == horizon.slot && candidates.every <= horizon.end() - horizon.start {
            let both = self.sums.cost.iter().zip(&self.sums.runs);
            let loads = both.map(|(cost, runs)| weigh(*cost, *runs)).collect();
            return Series { loads, first: horizon.start.div_euclid(horizon.slot) };
        }
        let (cost, first) = self.folded(&self.sums.cost, candidates.unit);
        let (runs, _) = self.folded(&self.sums.runs, candidates.unit);
        let near: Vec<f64> = cost.iter().zip(&runs).map(|(c, r)| weigh(*c, *r)).collect();
        if candidates.every <= horizon.end() - horizon.start {
            return Series { loads: near, first };
        }
        // Beyond the horizon lies what lies in it, over and over; but what runs less often lies
        // where it is known to be.
        let whole = horizon.whole() as f64;
        let slow = |slot: usize| {
            let runs = self.far.slow_runs[slot] as f64 * whole;
            self.far.slow_cost[slot] as f64 + each * runs
        };
        let far = (0..self.far.grid.slots).map(|slot| {
            let within = slot % near.len();
            if slot == within { near[slot] } else { near[within] - slow(within) + slow(slot) }
        });
        Series { loads: far.map(|load| load.max(0.0)).collect(), first }
    }

    /// Sums of slots of the horizon, in longer slots, and the number of the first of these.
    fn folded(&self, sums: &[i64], unit: i64) -> (Vec<i64>, i64) {
        let grid = self.horizon().grid();
        let first = grid.start.div_euclid(unit);
        let count = (grid.end().div_euclid(unit) - first).max(1) as usize;
        let mut folded = vec![0; count];
        for (slot, sum) in sums.iter().enumerate() {
            let begin = grid.start + grid.slot * slot as i64;
            if let Some(into) = folded.get_mut((begin.div_euclid(unit) - first) as usize) {
                *into += sum;
            }
        }
        (folded, first)
    }
}
