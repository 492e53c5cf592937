//! The state while a rebalance is planned: the movable jobs, the load per time slot, and the moves
//! found so far.

use std::collections::{BTreeMap, BTreeSet};

use super::Placement;
use super::classes::{Classes, Mover};
use super::times::time_on;
use crate::balance::loads::{Loads, Measure};
use crate::time::Timestamp;

pub(super) struct PlanState<'a> {
    pub classes: Classes,
    pub movers: Vec<Mover>,
    pub jobs: &'a [Placement],
    /// The planner moves no job to a start time before this time.
    pub quiet_until: Timestamp,
    /// The tenant's runs by slot.
    runs: Vec<f64>,
    /// Cost per time slot of the tenant's runs, in seconds.
    cost: Vec<f64>,
    /// The runs of all tenants.
    all: Vec<f64>,
    /// Steps in the order in which the planner found them.
    pub steps: Vec<Step>,
}

/// A planning step, which moves one job to another start time.
#[derive(Copy, Clone, Debug)]
pub(super) struct Step {
    pub mover: u32,
    pub from: u32,
    pub to: u32,
    /// True for the first half of a swap, which is made only together with the next step.
    pub is_half: bool,
}

/// For each cell (group of start times), the load of the time slots in which its jobs run.
pub(super) struct CellLoads {
    /// Number of runs, summed over the time slots of each cell.
    pub runs: Vec<f64>,
    /// Their cost.
    pub cost: Vec<f64>,
    /// The runs of all tenants.
    pub all: Vec<f64>,
    /// Number of jobs that moved to each cell of start times, minus jobs that moved away.
    came: Vec<f64>,
    /// The cost of these jobs.
    brought: Vec<f64>,
}

impl<'a> PlanState<'a> {
    pub fn new(
        classes: Classes,
        movers: Vec<Mover>,
        jobs: &'a [Placement],
        quiet_until: Timestamp,
        own: &Loads,
        all: &Loads,
    ) -> Self {
        let mut state = Self {
            classes,
            movers,
            jobs,
            quiet_until,
            runs: own.by_slot(Measure::Runs),
            cost: own.by_slot(Measure::Cost),
            all: all.by_slot(Measure::Runs),
            steps: Vec::new(),
        };
        let mut original: BTreeMap<(u32, u32), Vec<(u64, u32)>> = BTreeMap::new();
        for (number, mover) in state.movers.iter().enumerate() {
            original.entry((mover.class, mover.at)).or_default().push((mover.cost, number as u32));
        }
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for ((class, cell), original) in original {
            let sums = sums.entry(class).or_default();
            sums.0 += original.iter().map(|job| job.0 as f64 / 1e6).sum::<f64>();
            sums.1 += original.len() as f64;
            let cell = &mut state.classes.classes[class as usize].cells[cell as usize];
            cell.original = original.into_iter().collect();
        }
        for (class, (cost, jobs)) in sums {
            state.classes.classes[class as usize].weight = cost / jobs;
        }
        state
    }

    /// Average cost of a run, in seconds.
    pub fn mean_cost(&self) -> f64 {
        let (cost, runs) = (self.cost.iter().sum::<f64>(), self.runs.iter().sum::<f64>());
        if cost > 0.0 && runs > 0.0 { cost / runs } else { 1.0 }
    }

    /// Returns for each cell (group of start times) of a class the load of the time slots in which
    /// its jobs run.
    pub fn met(&self, class: usize) -> CellLoads {
        let class = &self.classes.classes[class];
        let cells = class.cells.len();
        let mut met = CellLoads {
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

    /// Updates the load per time slot with the moves that are recorded in `met`.
    pub fn apply(&mut self, class: usize, met: &CellLoads) {
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

    /// True if the job can move to the start times of this cell without waiting too long for its
    /// next run.
    pub fn may_wait(&self, mover: u32, to: usize) -> bool {
        let mover = &self.movers[mover as usize];
        mover.home == to as u32 || self.time_in(mover, to as u32).is_some()
    }

    /// Returns the next scheduled time of a job if it moves to the start times of this cell.
    pub fn time_in(&self, mover: &Mover, cell: u32) -> Option<Timestamp> {
        let job = &self.jobs[mover.job as usize];
        let class = &self.classes.classes[mover.class as usize];
        time_on(job, class.every, class.rest_in(cell, job.seed), self.quiet_until)
    }

    /// Removes a job, given as (cost, index of the `Mover`), from the list of its cell.
    pub fn take(&mut self, class: usize, cell: usize, job: (u64, u32)) {
        let cell = &mut self.classes.classes[class].cells[cell];
        if !cell.moved_in.remove(&job) {
            cell.original.remove(&job);
        }
    }

    /// Adds a job to the list of another cell of start times.
    pub fn put(&mut self, met: &mut CellLoads, mover: u32, to: usize, is_half: bool) {
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
        let jobs = if home == to as u32 { &mut jobs.original } else { &mut jobs.moved_in };
        jobs.insert((cost, mover));
        self.movers[mover as usize].at = to as u32;
        self.steps.push(Step { mover, from: at, to: to as u32, is_half });
    }
}

/// Returns the most expensive job that costs at most `cost`, and the cheapest job that costs more.
pub(super) fn next_to(jobs: &BTreeSet<(u64, u32)>, cost: u64) -> [Option<(u64, u32)>; 2] {
    let below = jobs.range(..=(cost, u32::MAX)).next_back();
    let above = jobs.range((cost, u32::MAX)..).find(|job| job.0 > cost);
    [below.copied(), above.copied()]
}
