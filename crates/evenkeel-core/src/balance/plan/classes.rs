//! Movable jobs, grouped into classes of equal intervals.
//!
//! All jobs of a class may move to the same cells. A cell is a set of phases that fall into the
//! same slots. So the plan decides how many jobs of a class move from one cell to another, not
//! where each job moves.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::balance::hits::{Grid, micros};
use crate::balance::load_profile::{Hours, LoadProfile, LoadProfileKey, Recurrence};
use crate::blackout::Blackouts;
use crate::time::{Span, Timestamp};

/// Jobs with the same interval, blackouts and preferred hours.
pub(super) struct Class {
    /// The load profile of one of these jobs.
    profile: LoadProfile,
    pub every: Span,
    pub cells: Vec<Cell>,
    /// The average cost of a run, in seconds.
    pub weight: f64,
    /// True if several cells share a slot.
    pub is_tangled: bool,
}

/// Phases that fall into the same slots.
pub(super) struct Cell {
    phases: Range<u32>,
    /// Runs within the horizon.
    pub runs: f64,
    /// The sum of the squared runs per slot: what a job adds to the load that it meets.
    pub squares: f64,
    /// How many of the runs are unwanted: those in a blackout, then those outside the preferred
    /// hours.
    pub unwanted: (u32, u32),
    /// True if jobs may be moved here.
    pub is_open: bool,
    /// Jobs that were here before the plan, as (cost in microseconds, index of the mover).
    pub original: BTreeSet<(u64, u32)>,
    /// Jobs that the plan moved here.
    pub moved_in: BTreeSet<(u64, u32)>,
}

/// A movable job.
pub(super) struct Mover {
    /// The index among the jobs of the plan.
    pub job: u32,
    pub class: u32,
    /// The cell without the plan.
    pub home: u32,
    /// The present cell.
    pub at: u32,
    /// The cost of a run, in microseconds.
    pub cost: u64,
}

pub(super) struct Classes {
    pub grid: Grid,
    /// Longest interval first.
    pub classes: Vec<Class>,
    /// The class and cell of each load profile.
    cells: HashMap<LoadProfileKey, (u32, Option<u32>)>,
}

impl Classes {
    /// Makes the classes of the movable `profiles`. Jobs that run less often than daily are not
    /// moved to times before `quiet_until`: they would wait another interval.
    pub fn new<'a>(
        profiles: impl Iterator<Item = (LoadProfileKey, &'a LoadProfile)>,
        grid: Grid,
        quiet_until: Timestamp,
    ) -> Self {
        let mut members: HashMap<String, Vec<(LoadProfileKey, &LoadProfile)>> = HashMap::new();
        for (key, profile) in profiles {
            let Recurrence::Every { .. } = profile.recurrence else { continue };
            // The profile without its phase identifies the class.
            let name = profile.moved_to(Timestamp::MIN).text();
            members.entry(name).or_default().push((key, profile));
        }
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|(name, these), (other, those)| {
            let order = interval(those[0].1).cmp(&interval(these[0].1));
            order.then_with(|| name.cmp(other))
        });
        // Classes with the most phases first, because they probably have the most jobs.
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

    /// Returns the class of a load profile, and its cell; the cell is `None` if it falls into no
    /// slot of the horizon.
    pub fn class_of(&self, key: LoadProfileKey) -> Option<(u32, Option<u32>)> {
        self.cells.get(&key).copied()
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
                unwanted: constraints
                    .as_ref()
                    .map_or((0, 0), |constraints| constraints.unwanted(&slots)),
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

    /// The number of slot visits that a pass over the class takes.
    pub fn size(&self) -> usize {
        let runs: f64 = self.cells.iter().map(|cell| cell.runs).sum();
        runs as usize + self.cells.len()
    }

    /// The load profile of a job in that cell.
    pub fn profile_of(&self, cell: u32) -> LoadProfile {
        let phase = self.cells[cell as usize].phases.start;
        LoadProfile {
            recurrence: Recurrence::Every { every: self.every, phase },
            ..self.profile.clone()
        }
    }

    /// The load profile of a job that runs at that time.
    pub fn profile_at(&self, time: Timestamp) -> LoadProfile {
        self.profile.moved_to(time)
    }

    /// The phase of a job that runs at that time.
    pub fn phase_at(&self, time: Timestamp) -> u32 {
        let rest = time.as_micros().rem_euclid(micros(self.every));
        (rest / micros(Recurrence::step(self.every))) as u32
    }

    /// Returns the remainder of the job's times modulo the interval, in that cell. Each job has its
    /// own second.
    pub fn rest_in(&self, cell: u32, seed: u64) -> i64 {
        let phases = &self.cells[cell as usize].phases;
        let step = micros(Recurrence::step(self.every));
        let begin = i64::from(phases.start) * step;
        let end = (i64::from(phases.end) * step).min(micros(self.every));
        let seconds = ((end - begin) / SECOND).max(1);
        begin + (seed % seconds.cast_unsigned()).cast_signed() * SECOND
    }

    /// Calls `hit` for every slot that jobs of the cell fall into, with the number of runs.
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

    /// True if jobs may move between this cell and others in the same way.
    pub fn is_like(&self, other: &Self) -> bool {
        self.is_open == other.is_open && self.unwanted == other.unwanted
    }

    /// True if jobs may move there: never to hours that they like less.
    pub fn may_go_to(&self, other: &Self) -> bool {
        other.is_open && other.unwanted <= self.unwanted
    }
}

const DAY: Span = Span::from_secs(86_400);
const SECOND: i64 = 1_000_000;
/// The most cells of all classes together: about 100 MB. Jobs of further classes are not moved.
const CELLS_MAX: usize = 1_000_000;

/// The unwanted slots of a job.
struct Constraints {
    is_in_blackout: Vec<bool>,
    is_disliked: Vec<bool>,
}

impl Constraints {
    fn new(hours: &Hours, grid: Grid) -> Self {
        let blackouts = Blackouts::new(&hours.blackouts, &hours.zone);
        let preferred = Blackouts::new(hours.preferred.as_slice(), &hours.zone);
        let middle = |slot| Timestamp::from_micros(grid.start + grid.slot * slot + grid.slot / 2);
        let slots = 0..grid.slots as i64;
        Self {
            is_in_blackout: slots
                .clone()
                .map(|slot| blackouts.is_in_blackout(middle(slot)))
                .collect(),
            is_disliked: slots
                .map(|slot| !preferred.is_empty() && !preferred.is_in_blackout(middle(slot)))
                .collect(),
        }
    }

    fn unwanted(&self, slots: &[(u32, i64)]) -> (u32, u32) {
        let count = |of: &[bool]| slots.iter().filter(|(slot, _)| of[*slot as usize]).count();
        (count(&self.is_in_blackout) as u32, count(&self.is_disliked) as u32)
    }
}

/// An approximate upper bound of the number of cells of a class.
fn cells_about(every: Span, grid: Grid) -> usize {
    let (every, step) = (micros(every), micros(Recurrence::step(every)));
    let width = if every % grid.slot == 0 { step.max(grid.slot) } else { step };
    (every.min(grid.end() - grid.start) / width + 1) as usize
}

/// Returns all phases with a time in the grid, in order.
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
