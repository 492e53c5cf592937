//! Moves that make runs more even.
//!
//! Each lowers the sum of the squares of the runs in all slots of the horizon, so there is an end
//! to them, and what they lead to has no slot that a job could leave for a better one.

use std::collections::{BTreeMap, BTreeSet};

use super::Placement;
use super::classes::{Cell, Class, Classes, Mover};
use super::heaps::{By, Heaps};
use super::times::time_on;
use crate::balance::loads::{Loads, Measure};
use crate::time::Timestamp;

/// What a plan is made of: jobs that may be moved, the load around them, and what was moved so far.
pub(super) struct Board<'a> {
    pub classes: Classes,
    pub movers: Vec<Mover>,
    pub jobs: &'a [Placement],
    /// No job is given a time before this moment.
    pub quiet_until: Timestamp,
    /// The tenant's runs by slot.
    runs: Vec<f64>,
    /// What they cost, in seconds.
    cost: Vec<f64>,
    /// Everybody's runs.
    all: Vec<f64>,
    /// In the order in which it was found.
    pub steps: Vec<Step>,
}

/// One job goes to a cell of its class.
#[derive(Copy, Clone, Debug)]
pub(super) struct Step {
    pub mover: u32,
    pub from: u32,
    pub to: u32,
    /// Only together with the step after it.
    pub is_half: bool,
}

/// What a class meets in its cells.
pub(super) struct Met {
    /// Runs, added up over the slots of each cell.
    pub runs: Vec<f64>,
    /// The same of their cost.
    pub cost: Vec<f64>,
    /// The same of everybody's runs.
    pub all: Vec<f64>,
    /// Jobs that came, less those that left.
    came: Vec<f64>,
    /// What they cost.
    brought: Vec<f64>,
}

/// Gains are sums of squares of whole numbers; anything below is a rounding error, or not worth it.
const LEAST_GAIN: f64 = 0.5;
/// After this many rounds in which little was gained, there is an end.
const LAST_ROUNDS: usize = 8;
/// How many slots are looked at, about, before rounds become coarser.
const EFFORT: usize = 100_000_000;

impl<'a> Board<'a> {
    pub fn new(
        classes: Classes,
        movers: Vec<Mover>,
        jobs: &'a [Placement],
        quiet_until: Timestamp,
        own: &Loads,
        all: &Loads,
    ) -> Self {
        let mut board = Self {
            classes,
            movers,
            jobs,
            quiet_until,
            runs: own.by_slot(Measure::Runs),
            cost: own.by_slot(Measure::Cost),
            all: all.by_slot(Measure::Runs),
            steps: Vec::new(),
        };
        let mut natives: BTreeMap<(u32, u32), Vec<(u64, u32)>> = BTreeMap::new();
        for (number, mover) in board.movers.iter().enumerate() {
            natives.entry((mover.class, mover.at)).or_default().push((mover.cost, number as u32));
        }
        for ((class, cell), natives) in natives {
            let cell = &mut board.classes.classes[class as usize].cells[cell as usize];
            cell.natives = natives.into_iter().collect();
        }
        board
    }

    /// Moves what makes runs more even, what gains most first; of equal gains, the longest interval
    /// first.
    pub fn even_out_runs(&mut self) {
        let work: usize = self.classes.classes.iter().map(Class::size).sum();
        let rounds = (EFFORT / work.max(1)).clamp(4, 32);
        let most = (0..self.classes.classes.len()).map(|class| self.best_gain(class));
        let most = most.fold(LEAST_GAIN, f64::max);
        let ratio = (LEAST_GAIN / most).powf(1.0 / rounds as f64);
        let mut gain = most;
        for _ in 0..rounds {
            gain = (gain * ratio).max(LEAST_GAIN);
            self.sweep(gain);
        }
        for _ in 0..LAST_ROUNDS {
            if !self.sweep(LEAST_GAIN) {
                break;
            }
        }
    }

    fn sweep(&mut self, gain: f64) -> bool {
        let before = self.steps.len();
        for class in 0..self.classes.classes.len() {
            while self.even_out(class, gain) && self.classes.classes[class].is_tangled {}
        }
        self.steps.len() > before
    }

    /// What is met in the cells of a class.
    pub fn met(&self, class: usize) -> Met {
        let class = &self.classes.classes[class];
        let cells = class.cells.len();
        let mut met = Met {
            runs: vec![0.0; cells],
            cost: vec![0.0; cells],
            all: vec![0.0; cells],
            came: vec![0.0; cells],
            brought: vec![0.0; cells],
        };
        for cell in 0..cells {
            class.visit(cell, self.classes.grid, |slot, share| {
                met.runs[cell] += share * self.runs[slot];
                met.cost[cell] += share * self.cost[slot];
                met.all[cell] += share * self.all[slot];
            });
        }
        met
    }

    /// Takes what came and left into account.
    pub fn settle(&mut self, class: usize, met: &Met) {
        let class = &self.classes.classes[class];
        for cell in 0..class.cells.len() {
            let (came, brought) = (met.came[cell], met.brought[cell]);
            if came != 0.0 || brought != 0.0 {
                class.visit(cell, self.classes.grid, |slot, share| {
                    self.runs[slot] += share * came;
                    self.all[slot] += share * came;
                    self.cost[slot] += share * brought;
                });
            }
        }
    }

    fn best_gain(&self, class: usize) -> f64 {
        let met = self.met(class);
        let cells = &self.classes.classes[class].cells;
        let most = (0..cells.len()).filter(|cell| cells[*cell].has_jobs());
        let most = most.max_by(|one, two| met.runs[*one].total_cmp(&met.runs[*two]));
        let least = (0..cells.len()).filter(|cell| cells[*cell].is_open);
        let least = least.min_by(|one, two| met.runs[*one].total_cmp(&met.runs[*two]));
        let both = most.zip(least);
        both.map_or(0.0, |(from, to)| gain(&met, cells, from, to))
    }

    /// Moves jobs of a class as long as each gains that much; says whether there was one. In a
    /// tangled class, only from one cell to another: then all others meet something else.
    fn even_out(&mut self, class: usize, least_gain: f64) -> bool {
        let mut met = self.met(class);
        let before = self.steps.len();
        let is_tangled = self.classes.classes[class].is_tangled;
        let mut heaps = Heaps::new(&self.classes.classes[class].cells, &met, By::Runs);
        while let Some(from) = heaps.fullest() {
            let cells = &self.classes.classes[class].cells;
            let to = heaps.emptiest_for(cells, from).filter(|_| cells[from].has_jobs());
            let gained = to.map_or(0.0, |to| gain(&met, cells, from, to));
            let Some(to) = to.filter(|_| gained >= least_gain) else {
                heaps.leave_alone(from);
                continue;
            };
            // Half of what could go: the gains of a tangled class are not quite what they seem.
            let squares = cells[from].squares;
            let each = 2.0 * (squares + cells[to].squares);
            let jobs =
                if is_tangled { 1 + ((gained - least_gain) / each / 2.0) as usize } else { 1 };
            for _ in 0..jobs {
                let half = (met.cost[from] - met.cost[to]) / 2.0 / squares;
                if let Some(mover) = self.take_one(class, from, to, half) {
                    self.put(&mut met, mover, to, false);
                }
            }
            if is_tangled {
                break;
            }
            let cells = &self.classes.classes[class].cells;
            heaps.changed(cells, &met, from);
            heaps.changed(cells, &met, to);
        }
        self.settle(class, &met);
        self.steps.len() > before
    }

    /// Takes a job out of a cell that may go to another: one that was moved already, if there is
    /// one, and whose cost is closest to `cost`, in seconds. Jobs that would have to wait too long
    /// are never asked again.
    fn take_one(&mut self, class: usize, from: usize, to: usize, cost: f64) -> Option<u32> {
        let cost = (cost.max(0.0) * 1e6) as u64;
        loop {
            let cell = &mut self.classes.classes[class].cells[from];
            let jobs = if cell.guests.is_empty() { &mut cell.natives } else { &mut cell.guests };
            let job = closest(jobs, cost)?;
            jobs.remove(&job);
            if self.may_wait(job.1, to) {
                return Some(job.1);
            }
        }
    }

    /// Can the job be given a time in that cell of its class?
    pub fn may_wait(&self, mover: u32, to: usize) -> bool {
        let mover = &self.movers[mover as usize];
        mover.home == to as u32 || self.time_in(mover, to as u32).is_some()
    }

    /// The next time of a job that is moved to that cell of its class.
    pub fn time_in(&self, mover: &Mover, cell: u32) -> Option<Timestamp> {
        let job = &self.jobs[mover.job as usize];
        let class = &self.classes.classes[mover.class as usize];
        time_on(job, class.every, class.rest_in(cell, job.seed), self.quiet_until)
    }

    /// Puts a job that was taken out of its cell into another.
    pub fn put(&mut self, met: &mut Met, mover: u32, to: usize, is_half: bool) {
        let Mover { class, home, at, cost, .. } = self.movers[mover as usize];
        let cells = &mut self.classes.classes[class as usize].cells;
        let secs = cost as f64 / 1e6;
        for (cell, sign) in [(at as usize, -1.0), (to, 1.0)] {
            let squares = sign * cells[cell].squares;
            met.runs[cell] += squares;
            met.all[cell] += squares;
            met.cost[cell] += squares * secs;
            met.came[cell] += sign;
            met.brought[cell] += sign * secs;
        }
        let jobs = &mut cells[to];
        let jobs = if home == to as u32 { &mut jobs.natives } else { &mut jobs.guests };
        jobs.insert((cost, mover));
        self.movers[mover as usize].at = to as u32;
        self.steps.push(Step { mover, from: at, to: to as u32, is_half });
    }
}

/// How much lower the sum of squares is after one job has gone from a cell to another.
pub(super) fn gain(met: &Met, cells: &[Cell], from: usize, to: usize) -> f64 {
    2.0 * (met.runs[from] - met.runs[to]) - cells[from].squares - cells[to].squares
}

/// The jobs next to `cost`: the heaviest of at most that, and the lightest of more.
pub(super) fn next_to(jobs: &BTreeSet<(u64, u32)>, cost: u64) -> [Option<(u64, u32)>; 2] {
    let below = jobs.range(..=(cost, u32::MAX)).next_back();
    let above = jobs.range((cost, u32::MAX)..).find(|job| job.0 > cost);
    [below.copied(), above.copied()]
}

/// The job whose cost is closest to `cost`.
fn closest(jobs: &BTreeSet<(u64, u32)>, cost: u64) -> Option<(u64, u32)> {
    match next_to(jobs, cost) {
        [Some(below), Some(above)] if above.0 - cost < cost - below.0 => Some(above),
        [below, above] => below.or(above),
    }
}
