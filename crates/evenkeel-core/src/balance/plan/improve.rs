//! Plans moves that spread runs more evenly over time.
//!
//! Each move lowers a sum of squares over all time slots: the squared number of runs and, in the
//! first rounds, the squared cost. The search for moves ends, because every move lowers the sum of
//! squares. The weight of cost decreases from round to round and is zero in the last round. The
//! plan spreads runs as evenly as possible, and cost as evenly as the even spread of runs allows.

use super::classes::{Cell, Class};
use super::heaps::Heaps;
use super::state::{CellLoads, PlanState, next_to};

/// The goal of one round of the search for moves.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Aim {
    /// Weight of cost relative to the number of runs.
    pub cost: f64,
    /// In seconds.
    pub mean_cost: f64,
    /// Load differences between two start times up to this share of the average load are ignored.
    pub tolerated: f64,
}

/// Minimum improvement for which a job is moved. Improvements are sums of squared integers, so an
/// improvement below this minimum is a rounding error or not worth a move.
const LEAST_GAIN: f64 = 0.5;
/// Maximum number of search rounds with the same goal, because later rounds improve little.
const LAST_ROUNDS: usize = 8;
/// Approximate number of time slots that all rounds of the search for moves visit together.
const EFFORT: usize = 100_000_000;
/// Relative load differences below this value are ignored in search rounds in which cost counts.
const TOLERATED: f64 = 0.02;

impl PlanState<'_> {
    /// Makes the number of runs per time slot more even and, where possible, their cost as well.
    pub fn even_out_all(&mut self) {
        let mean_cost = self.mean_cost();
        let aim = |cost| Aim { cost, mean_cost, tolerated: TOLERATED };
        self.even_out_most_first(aim(1.0));
        for cost in [0.1, 0.01] {
            self.even_out_rest(aim(cost));
        }
        self.even_out_rest(Aim { tolerated: 0.0, ..aim(0.0) });
    }

    /// Makes the number of runs per time slot more even with as few moves as possible.
    pub fn even_out_runs(&mut self) {
        let aim = Aim { cost: 0.0, mean_cost: self.mean_cost(), tolerated: 0.0 };
        self.even_out_most_first(aim);
        self.even_out_rest(aim);
    }

    /// Makes the most beneficial moves first. Among equally beneficial moves, jobs with the longest
    /// interval come first.
    fn even_out_most_first(&mut self, aim: Aim) {
        let work: usize = self.classes.classes.iter().map(Class::size).sum();
        let rounds = (EFFORT / work.max(1)).clamp(4, 32);
        let most = (0..self.classes.classes.len()).map(|class| self.most_gained(class, aim));
        let most = most.fold(LEAST_GAIN, f64::max);
        let ratio = (LEAST_GAIN / most).powf(1.0 / rounds as f64);
        let mut gain = most;
        for _ in 0..rounds {
            gain = (gain * ratio).max(LEAST_GAIN);
            self.sweep(aim, gain);
        }
    }

    fn even_out_rest(&mut self, aim: Aim) {
        for _ in 0..LAST_ROUNDS {
            if !self.sweep(aim, LEAST_GAIN) {
                break;
            }
        }
    }

    fn sweep(&mut self, aim: Aim, gain: f64) -> bool {
        let before = self.steps.len();
        for class in 0..self.classes.classes.len() {
            while self.even_out(class, aim, gain) && self.classes.classes[class].is_tangled {}
        }
        self.steps.len() > before
    }

    /// Returns the greatest improvement that moving one job of this class can make.
    fn most_gained(&self, class: usize, aim: Aim) -> f64 {
        let met = self.met(class);
        let cells = &self.classes.classes[class].cells;
        let heaviest = |cell: &Cell| cell.original.last().map_or(0, |job| job.0);
        let heaviest = cells.iter().map(heaviest).max().unwrap_or(0) as f64 / 1e6;
        let gain = |cell| aim.gained(&met, cells, (cell, cell), 0.0).abs();
        let one_gains = |cell: usize| {
            let cost = heaviest / aim.mean_cost * met.cost[cell] / aim.mean_cost;
            2.0 * (met.runs[cell] + aim.cost * cost) + gain(cell)
        };
        let left = (0..cells.len()).filter(|cell| cells[*cell].has_jobs());
        left.map(one_gains).fold(0.0, f64::max)
    }

    /// Moves jobs of a class as long as each move improves the evenness by at least `least`.
    /// Returns whether any job moved. If start times of the class share time slots, moves jobs only
    /// between one pair of start times, because a move changes all other loads.
    fn even_out(&mut self, class: usize, aim: Aim, least: f64) -> bool {
        let mut met = self.met(class);
        let before = self.steps.len();
        let Class { is_tangled, weight, ref cells, .. } = self.classes.classes[class];
        let key = |met: &CellLoads, cells: &[Cell], cell: usize| {
            let per_run = |sum: f64| sum / cells[cell].runs;
            let (runs, cost) = (per_run(met.runs[cell]), per_run(met.cost[cell]));
            let both = runs + aim.cost * (weight / aim.mean_cost) * (cost / aim.mean_cost);
            [both, cost, per_run(met.all[cell])]
        };
        let mean = (0..cells.len()).map(|cell| key(&met, cells, cell)[0]).sum::<f64>();
        let tolerated = aim.tolerated * mean / cells.len().max(1) as f64;
        let mut heaps = Heaps::new(cells, |cell| key(&met, cells, cell));
        while let Some(from) = heaps.fullest() {
            let cells = &self.classes.classes[class].cells;
            let to = heaps.emptiest_for(cells, from);
            let is_much =
                |to: &usize| key(&met, cells, from)[0] - key(&met, cells, *to)[0] > tolerated;
            let job = to
                .filter(is_much)
                .and_then(|to| Some((to, self.job_to_move(class, &met, (from, to), aim, least)?)));
            let Some((to, (mut job, gained))) = job else {
                heaps.leave_alone(from);
                continue;
            };
            // If start times share time slots, the improvement is only an estimate, so only half of
            // the jobs that could move are moved.
            let each = 2.0 * (cells[from].squares + cells[to].squares);
            let jobs = if is_tangled { 1 + ((gained - least) / each / 2.0) as usize } else { 1 };
            for _ in 0..jobs {
                self.take(class, from, job);
                // A job that would wait too long for its next run is removed from the list of its
                // cell, so that it is not tried again.
                if self.may_wait(job.1, to) {
                    self.put(&mut met, job.1, to, false);
                }
                let next = self.job_to_move(class, &met, (from, to), aim, least);
                let Some((next, _)) = next.filter(|_| is_tangled) else { break };
                job = next;
            }
            if is_tangled {
                break;
            }
            let cells = &self.classes.classes[class].cells;
            heaps.changed(cells, from, key(&met, cells, from));
            heaps.changed(cells, to, key(&met, cells, to));
        }
        self.apply(class, &met);
        self.steps.len() > before
    }

    /// Returns the job to move from one cell of start times to another, and the improvement, which
    /// is at least `least`. Prefers jobs that were moved before, and jobs whose cost makes the load
    /// of both start times most equal.
    fn job_to_move(
        &self,
        class: usize,
        met: &CellLoads,
        (from, to): (usize, usize),
        aim: Aim,
        least: f64,
    ) -> Option<((u64, u32), f64)> {
        let cells = &self.classes.classes[class].cells;
        let per_run = |sums: &[f64], cell: usize| sums[cell] / cells[cell].runs;
        let jobs = per_run(&met.runs, from) - per_run(&met.runs, to);
        let cost = per_run(&met.cost, from) - per_run(&met.cost, to);
        // When jobs move from the busier to the less busy cell until both have equally many runs,
        // both cells should also have equal cost.
        let wanted = (cost / jobs.max(2.0) * 1e6).max(0.0) as u64;
        let gained = |job: &(u64, u32)| aim.gained(met, cells, (from, to), job.0 as f64 / 1e6);
        [&cells[from].moved_in, &cells[from].original].into_iter().find_map(|jobs| {
            let job = match next_to(jobs, wanted) {
                [Some(below), Some(above)] if above.0 - wanted < wanted - below.0 => above,
                [below, above] => below.or(above)?,
            };
            Some((job, gained(&job))).filter(|(_, gained)| *gained >= least)
        })
    }
}

impl Aim {
    /// Returns a lower bound of the improvement when a job with this cost in seconds moves to other
    /// start times. If fewer of the job's runs fall into the balancing horizon after the move, each
    /// run counts more, because moving runs beyond the horizon is no improvement.
    pub fn gained(
        self,
        met: &CellLoads,
        cells: &[Cell],
        (from, to): (usize, usize),
        cost: f64,
    ) -> f64 {
        let hidden = (cells[from].runs / cells[to].runs).max(1.0);
        let squares = cells[from].squares + cells[to].squares;
        let runs = 2.0 * (met.runs[from] - met.runs[to] * hidden) - squares;
        if self.cost == 0.0 {
            return runs;
        }
        let unit = 1.0 / self.mean_cost;
        let met = (met.cost[from] - met.cost[to] * hidden) * unit;
        runs + self.cost * (2.0 * cost * unit * met - (cost * unit).powi(2) * squares)
    }
}
