//! Moves that make cost more even and leave runs as even as they are.

use super::classes::Cell;
use super::heaps::{By, Heaps};
use super::improve::{Board, Met, gain, next_to};

/// A cell that costs this much more than the others on average is left as it is.
const TOLERATED: f64 = 1.02;

/// What makes cost more even between two cells.
enum Change {
    /// A heavy job goes there and a light one comes back.
    Swap((u64, u32), (u64, u32)),
    /// A job goes there.
    Move((u64, u32)),
}

impl Board<'_> {
    /// Moves what makes cost more even.
    pub fn even_out_costs(&mut self) {
        for class in 0..self.classes.classes.len() {
            // What the cells of a tangled class meet changes with each move; its jobs run so often
            // that little is gained.
            if !self.classes.classes[class].is_tangled {
                self.even_out_cost(class);
            }
        }
    }

    fn even_out_cost(&mut self, class: usize) {
        let mut met = self.met(class);
        let cells = &self.classes.classes[class].cells;
        let tolerated = TOLERATED * met.cost.iter().sum::<f64>() / cells.len().max(1) as f64;
        let mut heaps = Heaps::new(cells, &met, By::Cost);
        // Each change gains something, but there is no end to small ones.
        for _ in 0..self.movers.len() {
            let Some(from) = heaps.fullest().filter(|from| met.cost[*from] > tolerated) else {
                break;
            };
            let cells = &self.classes.classes[class].cells;
            let to = heaps.emptiest_for(cells, from);
            let change = to.and_then(|to| Some((to, self.change(class, &met, from, to)?)));
            let Some((to, change)) = change else {
                heaps.leave_alone(from);
                continue;
            };
            match change {
                Change::Swap(heavy, light) => {
                    self.take(class, from, heavy);
                    self.take(class, to, light);
                    self.put(&mut met, heavy.1, to, true);
                    self.put(&mut met, light.1, from, false);
                }
                Change::Move(job) => {
                    self.take(class, from, job);
                    self.put(&mut met, job.1, to, false);
                }
            }
            let cells = &self.classes.classes[class].cells;
            heaps.changed(cells, &met, from);
            heaps.changed(cells, &met, to);
        }
        self.settle(class, &met);
    }

    /// The change between two cells that makes their cost most even, as far as it is easily found.
    fn change(&self, class: usize, met: &Met, from: usize, to: usize) -> Option<Change> {
        let cells = &self.classes.classes[class].cells;
        // So much has to go at most: half of it would make them equal.
        let most = (met.cost[from] - met.cost[to]) / cells[from].squares * 1e6;
        let half = (most / 2.0) as u64;
        let gained = |cost: u64| cost as f64 * (most - cost as f64);
        let mut best: Option<(f64, Change)> = None;
        let mut offer = |cost: u64, change: Change| {
            let gained = gained(cost);
            if gained > 1e-3 * most && best.as_ref().is_none_or(|(best, _)| gained > *best) {
                best = Some((gained, change));
            }
        };
        let is_neutral = gain(met, cells, from, to) > -1e-6;
        let leaves = cells[from].jobs_near(half);
        for job in leaves.into_iter().flatten().filter(|_| is_neutral) {
            offer(job.0, Change::Move(job));
        }
        let light = [cells[to].natives.first(), cells[to].guests.first()];
        if cells[to].may_go_to(&cells[from]) {
            for light in light.into_iter().flatten().copied() {
                for heavy in cells[from].jobs_near(light.0 + half).into_iter().flatten() {
                    if heavy.0 > light.0 {
                        offer(heavy.0 - light.0, Change::Swap(heavy, light));
                    }
                }
            }
        }
        let (_, change) = best?;
        let may = match &change {
            Change::Swap(heavy, light) => {
                self.may_wait(heavy.1, to) && self.may_wait(light.1, from)
            }
            Change::Move(job) => self.may_wait(job.1, to),
        };
        may.then_some(change)
    }

    fn take(&mut self, class: usize, cell: usize, job: (u64, u32)) {
        let cell = &mut self.classes.classes[class].cells[cell];
        if !cell.guests.remove(&job) {
            cell.natives.remove(&job);
        }
    }
}

impl Cell {
    /// The jobs whose cost is closest to `cost`: of those that came, and of those that were here.
    fn jobs_near(&self, cost: u64) -> [Option<(u64, u32)>; 4] {
        let [below, above] = next_to(&self.guests, cost);
        let [low, high] = next_to(&self.natives, cost);
        [below, above, low, high]
    }
}
