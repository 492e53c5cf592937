//! Plans moves that spread the cost of runs more evenly over time, while the number of runs per
//! time slot stays as even as it is.

use super::classes::Cell;
use super::heaps::Heaps;
use super::improve::Aim;
use super::state::{CellLoads, PlanState, next_to};

/// Jobs move only away from start times whose cost exceeds this multiple of the average cost.
const TOLERATED: f64 = 1.02;

/// Maximum number of swaps per class of similar jobs.
const CHANGES_MAX: usize = 50_000;
/// Maximum number of cells (groups of start times) that are searched for a swap if no swap with the
/// cheapest cell is possible.
const LOOKS_MAX: usize = 20_000;

/// The goal of a round in which only the number of runs counts, not their cost.
const RUNS: Aim = Aim { cost: 0.0, mean_cost: 1.0, tolerated: 0.0 };

/// A swap of jobs that makes the cost of two groups of start times (cells) more equal. An expensive
/// job moves to the other cell, and a cheap job may move back in exchange. Jobs are given as (cost,
/// index of the `Mover`).
struct Change {
    gained: f64,
    to: usize,
    goes: (u64, u32),
    comes: Option<(u64, u32)>,
}

impl PlanState<'_> {
    pub fn even_out_costs(&mut self) {
        for class in 0..self.classes.classes.len() {
            // Classes whose start times share time slots are skipped, because jobs of such classes
            // run so often that moving them would gain little.
            if !self.classes.classes[class].is_tangled {
                self.even_out_cost(class);
            }
        }
    }

    fn even_out_cost(&mut self, class: usize) {
        let mut met = self.met(class);
        let cells = &self.classes.classes[class].cells;
        let runs: f64 = cells.iter().map(|cell| cell.runs).sum();
        let tolerated = TOLERATED * met.cost.iter().sum::<f64>() / runs;
        let key = |met: &CellLoads, cells: &[Cell], cell: usize| {
            [&met.cost, &met.runs, &met.all].map(|sums| sums[cell] / cells[cell].runs)
        };
        let mut heaps = Heaps::new(cells, |cell| key(&met, cells, cell));
        let mut looks = LOOKS_MAX;
        // Long sequences of swaps with tiny improvements are possible, so the number of swaps is
        // limited.
        for _ in 0..CHANGES_MAX {
            let cells = &self.classes.classes[class].cells;
            let is_much = |from: &usize| met.cost[*from] / cells[*from].runs > tolerated;
            let Some(from) = heaps.fullest().filter(is_much) else { break };
            let to = heaps.emptiest_for(cells, from);
            let mut change = to.and_then(|to| self.change(class, &met, from, to));
            if change.is_none() && looks > 0 {
                looks -= cells.len().min(looks);
                change = self.any_change(class, &met, from);
            }
            let Some(change) = change else {
                heaps.leave_alone(from);
                continue;
            };
            let to = change.to;
            self.take(class, from, change.goes);
            if let Some(comes) = change.comes {
                self.take(class, to, comes);
            }
            self.put(&mut met, change.goes.1, to, change.comes.is_some());
            if let Some(comes) = change.comes {
                self.put(&mut met, comes.1, from, false);
            }
            let cells = &self.classes.classes[class].cells;
            heaps.changed(cells, from, key(&met, cells, from));
            heaps.changed(cells, to, key(&met, cells, to));
        }
        self.apply(class, &met);
    }

    /// Returns the best swap between the start times of the cell `from` and those of any other
    /// cell.
    fn any_change(&self, class: usize, met: &CellLoads, from: usize) -> Option<Change> {
        let cells = &self.classes.classes[class].cells;
        let others =
            (0..cells.len()).filter(|to| *to != from && cells[from].may_go_to(&cells[*to]));
        let changes = others.filter_map(|to| self.change(class, met, from, to));
        changes.reduce(|best, it| if it.gained > best.gained { it } else { best })
    }

    /// Returns a good swap between two cells of start times. The search for a swap is fast but does
    /// not always find the best one.
    fn change(&self, class: usize, met: &CellLoads, from: usize, to: usize) -> Option<Change> {
        let cells = &self.classes.classes[class].cells;
        // The cost difference between the two cells. If jobs with half of this cost move, the costs
        // of the two cells are equal.
        let most = met.cost[from] / cells[from].runs - met.cost[to] / cells[to].runs;
        let most = most * 1e6;
        if most < 1.0 {
            return None;
        }
        let half = (most / 2.0) as u64;
        let mut best: Option<Change> = None;
        let mut offer = |goes: (u64, u32), comes: Option<(u64, u32)>| {
            let cost = goes.0 as f64 - comes.map_or(0.0, |comes| comes.0 as f64);
            let gained = cost * (most - cost);
            if gained > 1e-3 * most && best.as_ref().is_none_or(|best| gained > best.gained) {
                best = Some(Change { gained, to, goes, comes });
            }
        };
        if RUNS.gained(met, cells, (from, to), 0.0) > -1e-6 {
            let near = cells[from].jobs_near(half);
            near.into_iter().flatten().for_each(|goes| offer(goes, None));
        }
        if cells[to].may_go_to(&cells[from]) {
            let light = [cells[to].original.first(), cells[to].moved_in.first()];
            for comes in light.into_iter().flatten() {
                let near = cells[from].jobs_near(comes.0 + half);
                near.into_iter().flatten().for_each(|goes| offer(goes, Some(*comes)));
            }
        }
        best.filter(|best| {
            let may_come = best.comes.is_none_or(|comes| self.may_wait(comes.1, from));
            may_come && self.may_wait(best.goes.1, to)
        })
    }
}

impl Cell {
    /// Returns the jobs whose cost is closest to `cost`: up to two jobs that the rebalance moved to
    /// this cell, and up to two jobs that were in this cell before.
    fn jobs_near(&self, cost: u64) -> [Option<(u64, u32)>; 4] {
        let [below, above] = next_to(&self.moved_in, cost);
        let [low, high] = next_to(&self.original, cost);
        [below, above, low, high]
    }
}
