//! Chooses the start time of a job among several candidate times.

use std::borrow::Cow;

use super::loads::Loads;
use super::place::{Candidates, NodeTurn};

/// Chooses the candidate time slot in which the fewest jobs have their next run.
pub(super) fn next(
    candidates: Candidates,
    own: &Loads,
    all: &Loads,
    turn: NodeTurn,
    wanted: Option<&[bool]>,
) -> usize {
    let is_alone = own.jobs() == all.jobs();
    let own = own.next_of(candidates);
    // If no other tenant has jobs, the tenant's load equals the load of all tenants.
    let all = if is_alone { Cow::Borrowed(&*own) } else { all.next_of(candidates) };
    let Some(wanted) = wanted else { return least(&own, &all, candidates, turn) };
    // Unwanted candidate time slots get the highest possible load, so that they are not chosen.
    let only = |of: &[i32]| -> Vec<i32> {
        of.iter().zip(wanted).map(|(load, wanted)| if *wanted { *load } else { i32::MAX }).collect()
    };
    least(&only(&own), &only(&all), candidates, turn)
}

/// Number of candidate times per block: the search finds the best block first, then the best
/// candidate within that block.
const BLOCK: usize = 256;
/// Number of values that vectorised (SIMD) code compares at once.
const LANES: usize = 8;

/// Returns the candidate time slot in which the job's tenant has the least load. Ties are decided
/// by the load of all tenants, then by whether this node prefers the time slot, then by the
/// earliest time.
fn least(own_loads: &[i32], all_loads: &[i32], candidates: Candidates, turn: NodeTurn) -> usize {
    let blocks = || own_loads.chunks(BLOCK).zip(all_loads.chunks(BLOCK)).enumerate();
    let least_of = |own: &[i32]| own.iter().copied().fold(i32::MAX, i32::min);
    let own_leasts: Vec<i32> = own_loads.chunks(BLOCK).map(least_of).collect();
    let own_least = own_leasts.iter().copied().fold(i32::MAX, i32::min);
    let (mut all_least, mut found) = (i32::MAX, 0);
    for (block, (own, all)) in blocks().filter(|(block, _)| own_leasts[*block] == own_least) {
        let least = least_of_all(own, all, own_least);
        if least < all_least {
            (all_least, found) = (least, block);
        }
        if all_least == 0 || std::ptr::eq(all_loads, own_loads) {
            break;
        }
    }
    let best = blocks().skip(found).flat_map(|(block, (own, all))| {
        let both = own.iter().zip(all).enumerate();
        let best = both.filter(|(_, (own, all))| **own == own_least && **all == all_least);
        best.map(move |(candidate, _)| block * BLOCK + candidate)
    });
    first_of_mine(best, candidates, turn)
}

/// Returns the smallest value of `all` among the positions where `own` equals `own_least`.
fn least_of_all(own: &[i32], all: &[i32], own_least: i32) -> i32 {
    // Where `own` is larger than `own_least`, the value of `all` is replaced with the largest
    // integer.
    let only = |own: i32, all: i32| all | if own == own_least { 0 } else { i32::MAX };
    let (own, own_rest) = own.as_chunks::<LANES>();
    let (all, all_rest) = all.as_chunks::<LANES>();
    let mut least = [i32::MAX; LANES];
    for (own, all) in own.iter().zip(all) {
        for lane in 0..LANES {
            least[lane] = least[lane].min(only(own[lane], all[lane]));
        }
    }
    let rest = own_rest.iter().zip(all_rest).map(|(own, all)| only(*own, *all));
    rest.chain(least).fold(i32::MAX, i32::min)
}

fn first_of_mine(
    mut best: impl Iterator<Item = usize>,
    candidates: Candidates,
    turn: NodeTurn,
) -> usize {
    let Some(first) = best.next() else { return 0 };
    let is_mine = |candidate: usize| turn.is_mine(candidates.slot() + candidate as i64);
    if is_mine(first) { first } else { best.find(|it| is_mine(*it)).unwrap_or(first) }
}

/// Chooses the candidate start time whose future runs fall into the least loaded time slots.
pub(super) fn projected(
    candidates: Candidates,
    own: &Loads,
    all: &Loads,
    turn: NodeTurn,
    wanted: Option<&[bool]>,
) -> usize {
    let mut own_met = own.series(candidates).met(candidates);
    for (met, _) in own_met.iter_mut().zip(wanted.into_iter().flatten()).filter(|it| !it.1) {
        *met = f64::INFINITY;
    }
    let own_least = least_met(&own_met);
    let is_least = |candidate: &usize| own_met[*candidate] <= own_least;
    if own.jobs() == all.jobs() {
        // If no other tenant has jobs, the tenant's load equals the load of all tenants.
        return first_of_mine((0..candidates.count).filter(is_least), candidates, turn);
    }
    let mut all_met = all.series(candidates).met(candidates);
    for (all, own) in all_met.iter_mut().zip(&own_met) {
        *all = if *own <= own_least { *all } else { f64::INFINITY };
    }
    let all_least = least_met(&all_met);
    let is_best = |candidate: &usize| is_least(candidate) && all_met[*candidate] <= all_least;
    first_of_mine((0..candidates.count).filter(is_best), candidates, turn)
}

/// Returns the smallest number and ignores NaN.
fn least_met(met: &[f64]) -> f64 {
    let lesser = |one: f64, other: f64| if one < other { one } else { other };
    let (lanes, rest) = met.as_chunks::<LANES>();
    let mut least = [f64::INFINITY; LANES];
    for met in lanes {
        for lane in 0..LANES {
            least[lane] = lesser(met[lane], least[lane]);
        }
    }
    rest.iter().copied().chain(least).fold(f64::INFINITY, lesser)
}

/// The load of consecutive time slots in a ring: the first time slot follows the last one.
struct Series {
    loads: Vec<f64>,
    /// Number of the first time slot, counted from 1970.
    first: i64,
}

impl Series {
    /// Returns for each candidate start time the sum of the squared loads of the time slots in
    /// which its future runs fall. Because of the squares, one very busy time slot counts more than
    /// several slightly busy ones.
    fn met(&self, candidates: Candidates) -> Vec<f64> {
        let slots = self.loads.len();
        let times = (slots as i64 * candidates.unit / candidates.every).max(1);
        let mut met = vec![0.0; candidates.count];
        for nth in 0..times {
            let time = candidates.first + nth * candidates.every;
            let slot = time.div_euclid(candidates.unit) - self.first;
            self.meet(slot.rem_euclid(slots as i64) as usize, &mut met);
        }
        met
    }

    /// Adds to `met`, for each candidate start time, the squared load of the time slot of one
    /// future run. `slot` is the time slot of the future run of the first candidate. The candidate
    /// start times are in consecutive time slots.
    fn meet(&self, slot: usize, met: &mut [f64]) {
        let (before, after) = self.loads.split_at(slot);
        let (head, tail) = met.split_at_mut(after.len().min(met.len()));
        head.iter_mut().zip(after).for_each(|(met, load)| *met += load * load);
        tail.iter_mut().zip(before).for_each(|(met, load)| *met += load * load);
    }
}

impl Loads {
    /// Returns for each candidate start time how many jobs have their next run in its time slot.
    fn next_of(&self, candidates: Candidates) -> Cow<'_, [i32]> {
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
            sum.map_or(0, |sum| i32::try_from(*sum).unwrap_or(i32::MAX))
        });
        known.collect()
    }

    /// Returns the load per time slot; the time slots are as long as those of the candidates. The
    /// load of a time slot is the total cost of its runs, plus the average cost of a run for each
    /// of its runs. So a time slot is busy if it has many short runs or few long runs.
    fn series(&self, candidates: Candidates) -> Series {
        let each = self.average_cost();
        let weighted = |cost: &[i64], runs: &[i64]| -> Vec<f64> {
            let both = cost.iter().zip(runs);
            both.map(|(cost, runs)| (*cost as f64 + each * *runs as f64).max(0.0)).collect()
        };
        let near = self.horizon().grid();
        let (mut loads, first) = if candidates.unit == near.slot {
            (weighted(&self.sums.cost, &self.sums.runs), near.start.div_euclid(near.slot))
        } else {
            let (cost, first) = self.folded(&self.sums.cost, candidates.unit);
            (weighted(&cost, &self.folded(&self.sums.runs, candidates.unit).0), first)
        };
        if candidates.every > near.end() - near.start {
            self.extend(&mut loads, each * near.whole() as f64);
        }
        Series { loads, first }
    }

    /// Extends the load beyond the balancing horizon (the next seven days) by repeating it. Runs of
    /// jobs whose interval is longer than the balancing horizon are not repeated, because their run
    /// times are known.
    fn extend(&self, loads: &mut Vec<f64>, each: f64) {
        let (cost, runs) = (&self.far.slow_cost, &self.far.slow_runs);
        let near = loads.len().min(cost.len());
        let slow = |(cost, runs): (&f64, &f64)| cost + each * runs;
        let all = loads.iter().zip(cost.iter().zip(runs).map(slow));
        let base: Vec<f64> = all.map(|(load, slow)| load - slow).collect();
        loads.reserve(cost.len() - near);
        for (cost, runs) in cost[near..].chunks(near).zip(runs[near..].chunks(near)) {
            let later = cost.iter().zip(runs).map(slow).zip(&base);
            loads.extend(later.map(|(slow, base)| (slow + base).max(0.0)));
        }
    }

    /// Sums the load of the time slots into longer time slots of the length `unit`. Also returns
    /// the number of the first of the longer time slots.
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
