//! Groups the jobs that a rebalance may move into classes with equal intervals and constraints.
//!
//! All jobs of a class may move to the same start times. A group of start times whose runs fall
//! into the same time slots is called a cell. The planner only decides how many jobs move from one
//! group of start times (cell) to another, not where each single job moves.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::balance::hits::{Grid, micros};
use crate::balance::load_profile::{Hours, LoadProfile, LoadProfileKey, Recurrence};
use crate::blackout::Blackouts;
use crate::time::{Span, Timestamp};

/// A class: all movable jobs with the same interval, blackouts and preferred hours.
pub(super) struct Class {
    /// The load profile of one job, which represents all jobs of the class.
    pub profile: LoadProfile,
    pub every: Span,
    pub cells: Vec<Cell>,
    /// Average cost of a run, in seconds.
    pub weight: f64,
    /// True if jobs with start times in different cells can run in the same time slot.
    pub is_tangled: bool,
}

/// A group of start times whose runs fall into the same time slots.
pub(super) struct Cell {
    phases: Range<u32>,
    /// Number of runs of one job in this cell within the balancing horizon.
    pub runs: f64,
    /// Sum of the squared numbers of runs per time slot, for one job in this cell.
    pub squares: f64,
    /// Number of a job's runs in blackouts, and number of a job's runs outside its preferred hours.
    pub unwanted: (u32, u32),
    /// True if a rebalance may move jobs to the start times of this cell.
    pub is_open: bool,
    /// Jobs whose start time was in this cell before the rebalance, as (cost in microseconds, index
    /// of the `Mover`).
    pub original: BTreeSet<(u64, u32)>,
    /// Jobs that the rebalance moved to start times of this cell.
    pub moved_in: BTreeSet<(u64, u32)>,
}

/// A job that a rebalance may move.
pub(super) struct Mover {
    /// Index of the job in the list that was given to the planner.
    pub job: u32,
    pub class: u32,
    /// The cell before the rebalance.
    pub home: u32,
    /// The cell to which the job is moved in the plan so far.
    pub at: u32,
    /// Cost of a run, in microseconds.
    pub cost: u64,
}

pub(super) struct Classes {
    pub grid: Grid,
    /// Longest interval first.
    pub classes: Vec<Class>,
    /// For each load profile, its class of jobs and its cell of start times. The cell is `None` if
    /// the profile has no run within the balancing horizon.
    pub cells: HashMap<LoadProfileKey, (u32, Option<u32>)>,
}

impl Classes {
    /// Groups the load profiles of movable jobs into classes with the same interval and
    /// constraints. Jobs that run less often than daily are not moved to start times before
    /// `quiet_until`, because the first possible run would then be a whole interval later.
    pub fn new<'a>(
        profiles: impl Iterator<Item = (LoadProfileKey, &'a LoadProfile)>,
        grid: Grid,
        quiet_until: Timestamp,
    ) -> Self {
        let mut members: HashMap<String, Vec<(LoadProfileKey, &LoadProfile)>> = HashMap::new();
        for (key, profile) in profiles {
            let Recurrence::Every { .. } = profile.recurrence else { continue };
            // All jobs whose load profiles differ only in the start time belong to one class.
            let name = profile.moved_to(Timestamp::MIN).text();
            members.entry(name).or_default().push((key, profile));
        }
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|(name, these), (other, those)| {
            let order = interval(those[0].1).cmp(&interval(these[0].1));
            order.then_with(|| name.cmp(other))
        });
        // If the number of cells exceeds `CELLS_MAX`, classes with the most load profiles are kept,
        // because classes with many load profiles probably have the most jobs.
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|class| std::cmp::Reverse(members[*class].1.len()));
        let mut cells_left = CELLS_MAX;
        let mut fits = vec![false; members.len()];
        for class in order {
            let cells = cells_about(interval(members[class].1[0].1), grid);
            fits[class] = cells <= cells_left;
            cells_left -= if fits[class] { cells } else { 0 };
        }
        let mut cells = HashMap::new();
        let mut classes = Vec::with_capacity(members.len());
        for ((_, members), fits) in members.into_iter().zip(fits) {
            let mut class = Class::new(members[0].1);
            if fits {
                class.find_cells(grid, quiet_until);
            }
            let index = classes.len() as u32;
            for (key, profile) in members {
                cells.insert(key, (index, class.cell_of(profile)));
            }
            classes.push(class);
        }
        Self { grid, classes, cells }
    }
}

impl Class {
    fn new(profile: &LoadProfile) -> Self {
        let (profile, every) = (profile.clone(), interval(profile));
        Self { profile, every, cells: Vec::new(), weight: 0.0, is_tangled: false }
    }

    fn find_cells(&mut self, grid: Grid, quiet_until: Timestamp) {
        let every = self.every;
        let (mut slots, mut slots_of_last) = (Vec::new(), Vec::new());
        let mut is_hit = vec![false; grid.slots];
        let constraints = self.profile.hours.as_ref().map(|hours| Constraints::new(hours, grid));
        let begins_late =
            |slot: u32| grid.start + i64::from(slot) * grid.slot >= quiet_until.as_micros();
        for phase in phases(every, grid) {
            slots.clear();
            let recurrence = Recurrence::Every { every, phase };
            grid.visit(&plain(recurrence), |hit| slots.push((hit.slot as u32, hit.times)));
            if slots.is_empty() {
                continue;
            }
            let last = self.cells.last_mut().filter(|last| last.phases.end == phase);
            if let Some(last) = last.filter(|_| slots == slots_of_last) {
                last.phases.end = phase + 1;
                continue;
            }
            for (slot, _) in &slots {
                self.is_tangled |= std::mem::replace(&mut is_hit[*slot as usize], true);
            }
            let share = |times: i64| times as f64 / grid.whole() as f64;
            self.cells.push(Cell {
                phases: phase..phase + 1,
                runs: slots.iter().map(|(_, times)| share(*times)).sum(),
                squares: slots.iter().map(|(_, times)| share(*times).powi(2)).sum(),
                unwanted: constraints.as_ref().map_or((0, 0), |it| it.unwanted(&slots)),
                is_open: every <= DAY || begins_late(slots[0].0),
                original: BTreeSet::new(),
                moved_in: BTreeSet::new(),
            });
            std::mem::swap(&mut slots, &mut slots_of_last);
        }
    }

    fn cell_of(&self, profile: &LoadProfile) -> Option<u32> {
        let Recurrence::Every { phase, .. } = profile.recurrence else { return None };
        let cell = self.cells.partition_point(|cell| cell.phases.end <= phase);
        let found = self.cells.get(cell).is_some_and(|cell| cell.phases.contains(&phase));
        found.then_some(cell as u32)
    }

    /// Number of time slots that one pass over all start times of the class visits.
    pub fn size(&self) -> usize {
        let runs: f64 = self.cells.iter().map(|cell| cell.runs).sum();
        runs as usize + self.cells.len()
    }

    /// Returns the load profile of jobs that start at the times of this cell.
    pub fn profile_of(&self, cell: u32) -> LoadProfile {
        let phase = self.cells[cell as usize].phases.start;
        LoadProfile {
            recurrence: Recurrence::Every { every: self.every, phase },
            ..self.profile.clone()
        }
    }

    /// Returns the phase (the stored offset within the interval) of a job that runs at `time`.
    pub fn phase_at(&self, time: Timestamp) -> u32 {
        let rest = time.as_micros().rem_euclid(micros(self.every));
        (rest / micros(Recurrence::step(self.every))) as u32
    }

    /// Returns the offset within the interval, in microseconds, at which a job with this `seed`
    /// runs in this cell of start times. The second depends on the job's `seed`, so that jobs in
    /// the same time slot do not all start at once.
    pub fn rest_in(&self, cell: u32, seed: u64) -> i64 {
        let phases = &self.cells[cell as usize].phases;
        let step = micros(Recurrence::step(self.every));
        let begin = i64::from(phases.start) * step;
        let end = (i64::from(phases.end) * step).min(micros(self.every));
        let seconds = ((end - begin) / SECOND).max(1);
        begin + (seed % seconds.cast_unsigned()).cast_signed() * SECOND
    }

    /// Calls `hit` for every time slot in which a job in this cell runs, with the job's number of
    /// runs in that time slot.
    pub fn visit(&self, cell: usize, grid: Grid, mut hit: impl FnMut(usize, f64)) {
        let recurrence =
            Recurrence::Every { every: self.every, phase: self.cells[cell].phases.start };
        let share = 1.0 / grid.whole() as f64;
        grid.visit(&plain(recurrence), |it| hit(it.slot, it.times as f64 * share));
    }
}

impl Cell {
    pub fn has_jobs(&self) -> bool {
        !self.original.is_empty() || !self.moved_in.is_empty()
    }

    /// True if jobs may be moved to and from the start times of both cells under the same rules.
    pub fn is_like(&self, other: &Self) -> bool {
        self.is_open == other.is_open && self.unwanted == other.unwanted
    }

    /// True if jobs of this cell may move to the start times of the cell `other`. Jobs never move
    /// to start times with more runs in blackouts. If the number of runs in blackouts is equal,
    /// jobs never move to start times with more runs outside their preferred hours.
    pub fn may_go_to(&self, other: &Self) -> bool {
        other.is_open && other.unwanted <= self.unwanted
    }
}

const DAY: Span = Span::from_secs(86_400);
const SECOND: i64 = 1_000_000;
/// Maximum number of cells (groups of start times) of all classes together, which take about 100
/// MB. A rebalance does not move jobs of classes beyond this limit.
const CELLS_MAX: usize = 1_000_000;

/// The time slots that blackouts and preferred hours of a class exclude.
struct Constraints {
    is_in_blackout: Vec<bool>,
    is_disliked: Vec<bool>,
}

impl Constraints {
    fn new(hours: &Hours, grid: Grid) -> Self {
        let blackouts = Blackouts::new(&hours.blackouts, &hours.zone);
        let preferred = Blackouts::new(hours.preferred.as_slice(), &hours.zone);
        let is_disliked = |at| !preferred.is_empty() && !preferred.is_in_blackout(at);
        let middles = || (0..grid.slots).map(|slot| grid.middle_of(slot));
        Self {
            is_in_blackout: middles().map(|at| blackouts.is_in_blackout(at)).collect(),
            is_disliked: middles().map(is_disliked).collect(),
        }
    }

    fn unwanted(&self, slots: &[(u32, i64)]) -> (u32, u32) {
        let count = |of: &[bool]| slots.iter().filter(|(slot, _)| of[*slot as usize]).count();
        (count(&self.is_in_blackout) as u32, count(&self.is_disliked) as u32)
    }
}

/// Returns an upper estimate of the number of cells (groups of start times) for an interval.
fn cells_about(every: Span, grid: Grid) -> usize {
    let (every, step) = (micros(every), micros(Recurrence::step(every)));
    let width = if every % grid.slot == 0 { step.max(grid.slot) } else { step };
    (every.min(grid.end() - grid.start) / width + 1) as usize
}

/// Returns, in ascending order, all phases (stored offsets within the interval) with a run in one
/// of the time slots of `grid`.
fn phases(every: Span, grid: Grid) -> Vec<u32> {
    let step = micros(Recurrence::step(every));
    let all = (micros(every) + step - 1) / step;
    let seen = (grid.end() - grid.start) / step + 2;
    if all <= seen {
        return (0..all).map(|phase| phase as u32).collect();
    }
    let first = grid.start.rem_euclid(micros(every)) / step;
    let mut phases: Vec<u32> = (0..seen).map(|n| ((first + n) % all) as u32).collect();
    phases.sort_unstable();
    phases
}

fn interval(profile: &LoadProfile) -> Span {
    match profile.recurrence {
        Recurrence::Every { every, .. } => every,
        _ => Span::ZERO,
    }
}

/// A load profile without constraints.
fn plain(recurrence: Recurrence) -> LoadProfile {
    LoadProfile { recurrence, fixed: false, from: None, hours: None }
}
