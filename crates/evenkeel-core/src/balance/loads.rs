//! Load by slot.

use std::collections::BTreeMap;

use super::accepted::Accepted;
use super::hits::{Grid, micros};
use super::load_profile::{LoadProfile, Recurrence};
use super::seconds::Seconds;
use super::settings::BalanceSettings;
use crate::slot::Slot;
use crate::time::{Span, Timestamp};

/// The stretch of time in which load is counted: seven days, or 4096 slots if those are shorter, but a
/// day at least.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Horizon {
    /// Where the first slot begins.
    pub start: Timestamp,
    /// How long each is.
    pub slot: Span,
    /// How many there are.
    pub slots: usize,
}

/// What is counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Jobs, where their next run is.
    Next,
    /// Runs.
    Runs,
    /// What runs cost.
    Cost,
}

/// Load by slot.
///
/// What it takes in memory depends on the number of slots, not on that of jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Loads {
    horizon: Horizon,
    jobs: u64,
    /// All load that lies in slots.
    pub(super) sums: Sums,
    /// All runs of that together.
    total_runs: i128,
    /// And what they cost.
    total_cost: i128,
    /// What of it nobody can move, in the first day.
    pub(super) fixed: Sums,
    /// The heaviest runs of the first day, as far as known: no less than the average of what was
    /// added together.
    pub(super) heaviest: Vec<i64>,
    /// What can be moved of the first day, by where it may be.
    pub(super) movable: BTreeMap<Where, Amounts>,
    /// Where jobs may be that shun or prefer some hours.
    pub(super) accepted: Accepted,
    /// Jobs that may run at any time: how many there are of a period, and what they cost.
    pub(super) often: BTreeMap<Span, Amounts>,
    /// Jobs by the second, as far as it is known.
    pub(super) seconds: Seconds,
    /// The next month.
    pub(super) far: Far,
}

/// Sums by slot; times in [`Grid::whole`] ones, costs in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sums {
    pub next: Vec<i64>,
    pub runs: Vec<i64>,
    pub cost: Vec<i64>,
}

/// Sums of something else.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Amounts {
    pub next: i64,
    pub runs: i64,
    pub cost: i64,
}

/// Where a job may be: its next time in so many slots, each time in hours that it accepts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Where {
    pub window: usize,
    /// Which of [`Accepted::slots`].
    pub hours: Option<usize>,
}

/// Load of the next month, in slots of at least a quarter of an hour.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Far {
    pub grid: Grid,
    /// Jobs, where their next run is.
    pub next: Vec<i32>,
    /// Runs of jobs that do not run in every [`Horizon`]. A whole number, kept as whoever chooses a
    /// time reckons with it: turning it into that is most of the work of choosing.
    pub slow_runs: Vec<f64>,
    /// What they cost.
    pub slow_cost: Vec<f64>,
}

const DAY: Span = Span::from_secs(86_400);
const WEEK: Span = Span::from_secs(7 * 86_400);
/// Beyond the first day so many slots are counted at most.
const SLOTS_MAX: u64 = 4096;
/// So many windows are told apart; others count as the next shorter one. Each is poured on its own
/// whenever a spread is looked at.
const WINDOWS_MAX: usize = 512;
/// No first time is later than this.
pub(super) const FAR: Span = Span::from_secs(31 * 86_400);

impl Horizon {
    /// The stretch that begins with the slot of `now`.
    pub fn new(settings: &BalanceSettings, now: Timestamp) -> Self {
        let slot = settings.slot.max(Span::from_secs(1));
        let start = now.as_micros() - now.as_micros().rem_euclid(micros(slot));
        // A day is always whole, however short its slots are.
        let most = SLOTS_MAX.max(DAY.as_micros() / slot.as_micros());
        let slots = (WEEK.as_micros() / slot.as_micros()).clamp(1, most);
        Self { start: Timestamp::from_micros(start), slot, slots: slots as usize }
    }

    /// How many of its slots are the first 24 hours.
    pub fn day(self) -> usize {
        self.slots.min((DAY.as_micros() / self.slot.as_micros()).max(1) as usize)
    }

    /// How long it is, in microseconds.
    pub(super) fn length(self) -> i64 {
        micros(self.slot) * self.slots as i64
    }

    pub(super) fn grid(self) -> Grid {
        Grid { start: self.start.as_micros(), slot: micros(self.slot), slots: self.slots }
    }

    /// Can a rebalance move it?
    pub(super) fn is_movable(self, rhythm: &LoadProfile) -> bool {
        matches!(rhythm.recurrence, Recurrence::Every { every, .. } if !rhythm.fixed && every >= self.slot)
    }
}

impl Sums {
    fn new(slots: usize) -> Self {
        Self { next: vec![0; slots], runs: vec![0; slots], cost: vec![0; slots] }
    }

    pub fn of(&self, measure: Measure) -> &[i64] {
        match measure {
            Measure::Next => &self.next,
            Measure::Runs => &self.runs,
            Measure::Cost => &self.cost,
        }
    }

    fn add(&mut self, slot: usize, by: Amounts) {
        let add = |sum: &mut i64, by: i64| *sum = sum.saturating_add(by);
        add(&mut self.next[slot], by.next);
        add(&mut self.runs[slot], by.runs);
        add(&mut self.cost[slot], by.cost);
    }
}

impl Amounts {
    pub fn of(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost,
        }
    }

    fn add(&mut self, by: Self) {
        self.next = self.next.saturating_add(by.next);
        self.runs = self.runs.saturating_add(by.runs);
        self.cost = self.cost.saturating_add(by.cost);
    }
}

impl Loads {
    /// No load.
    pub fn new(horizon: Horizon) -> Self {
        let far_slot = horizon.slot.max(Slot::LENGTH);
        let start = horizon.start.as_micros();
        let far = Grid {
            start: start - start.rem_euclid(micros(far_slot)),
            slot: micros(far_slot),
            // The first may be over, and the last is only begun.
            slots: (FAR.as_micros() / far_slot.as_micros()) as usize + 2,
        };
        Self {
            horizon,
            jobs: 0,
            sums: Sums::new(horizon.slots),
            total_runs: 0,
            total_cost: 0,
            fixed: Sums::new(horizon.day()),
            heaviest: vec![0; horizon.day()],
            movable: BTreeMap::new(),
            accepted: Accepted::default(),
            often: BTreeMap::new(),
            seconds: Seconds::default(),
            far: Far {
                grid: far,
                next: vec![0; far.slots],
                slow_runs: vec![0.0; far.slots],
                slow_cost: vec![0.0; far.slots],
            },
        }
    }

    /// Where it is counted.
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Adds `jobs` of a rhythm, whose runs cost `cost` (of all of them together, once each).
    pub fn add(&mut self, rhythm: &LoadProfile, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_add(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(rhythm, jobs, micros(cost));
    }

    /// Takes them away again.
    pub fn remove(&mut self, rhythm: &LoadProfile, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_sub(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(rhythm, -jobs, -micros(cost));
    }

    fn change(&mut self, rhythm: &LoadProfile, jobs: i64, cost: i64) {
        if let Recurrence::Often(period) = rhythm.recurrence {
            let by = Amounts { next: jobs, runs: jobs, cost };
            return keep(&mut self.often, period, by);
        }
        if let Recurrence::Every { every, phase } = rhythm.recurrence {
            self.seconds.change(every, phase, jobs);
        }
        let grid = self.horizon.grid();
        let (day, whole) = (self.horizon.day(), grid.whole());
        let is_movable = self.horizon.is_movable(rhythm);
        let heavy = if jobs > 0 { cost / jobs } else { 0 };
        let mut of_day = Amounts::default();
        let mut first = None;
        let Self { sums, total_runs, total_cost, fixed, heaviest, .. } = self;
        grid.visit(rhythm, |hit| {
            first = first.or(Some(hit.slot));
            let by = Amounts {
                next: if hit.first { jobs.saturating_mul(hit.times.min(whole)) } else { 0 },
                runs: jobs.saturating_mul(hit.times),
                cost: cost.saturating_mul(hit.times) / whole,
            };
            sums.add(hit.slot, by);
            *total_runs += i128::from(by.runs);
            *total_cost += i128::from(by.cost);
            if hit.slot >= day {
                return;
            }
            if is_movable {
                of_day.add(by);
                heaviest[hit.slot] = heaviest[hit.slot].max(heavy);
            } else {
                fixed.add(hit.slot, by);
            }
        });
        if of_day != Amounts::default() {
            let place = self.place_of(rhythm);
            keep(&mut self.movable, place, of_day);
        }
        self.change_far(rhythm, jobs, cost, first);
    }

    fn change_far(&mut self, rhythm: &LoadProfile, jobs: i64, cost: i64, first: Option<usize>) {
        let near = self.horizon.grid();
        let Far { grid, next, slow_runs, slow_cost } = &mut self.far;
        let first = match first {
            Some(slot) if grid.slot == near.slot => Some(slot),
            _ => grid.first_of(rhythm, near.start),
        };
        if let Some(slot) = first {
            let sum = i64::from(next[slot]).saturating_add(jobs);
            next[slot] = i32::try_from(sum.max(0)).unwrap_or(i32::MAX);
        }
        let length = near.end() - near.start;
        if matches!(rhythm.recurrence, Recurrence::Every { every, .. } if micros(every) > length) {
            grid.visit(rhythm, |hit| {
                slow_runs[hit.slot] += jobs as f64;
                slow_cost[hit.slot] += cost as f64;
            });
        }
    }

    /// Where a rhythm that can be moved may be.
    fn place_of(&mut self, rhythm: &LoadProfile) -> Where {
        let Recurrence::Every { every, .. } = rhythm.recurrence else {
            return Where { window: self.horizon.day(), hours: None };
        };
        let window = (every.as_micros() / self.horizon.slot.as_micros()).max(1);
        let day = self.horizon.day();
        let window = usize::try_from(window).unwrap_or(usize::MAX).min(day);
        let window = (window - window % day.div_ceil(WINDOWS_MAX)).max(1);
        // What runs more often than daily runs at all hours, whatever it prefers.
        let hours = rhythm.hours.as_ref().filter(|_| every >= DAY);
        let hours = hours.and_then(|hours| self.accepted.index_of(hours, self.horizon));
        Where { window, hours }
    }

    /// What a run costs on average, in microseconds; of runs as [`Grid::whole`] counts them.
    pub(super) fn average_cost(&self) -> f64 {
        if self.total_runs > 0 { self.total_cost as f64 / self.total_runs as f64 } else { 0.0 }
    }

    /// How many runs lie between two moments, which are borders of slots; beyond the horizon, how many
    /// jobs have their next one there.
    pub(super) fn runs_between(&self, from: i64, until: i64) -> u64 {
        let grid = self.horizon.grid();
        let slot = |time: i64| (time - grid.start).div_euclid(grid.slot);
        if let (Ok(first), Ok(last)) = (usize::try_from(slot(from)), usize::try_from(slot(until)))
            && let Some(runs) = self.sums.runs.get(first..last)
        {
            return u64::try_from(runs.iter().sum::<i64>() / grid.whole()).unwrap_or(0);
        }
        let far = self.far.grid.slot_of(from).and_then(|slot| self.far.next.get(slot));
        far.map_or(0, |jobs| u64::try_from(*jobs).unwrap_or(0))
    }

    /// How many jobs were added.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }
}

/// Adds to what is kept under a key, and forgets what has become nothing.
fn keep<K: Ord + Copy>(kept: &mut BTreeMap<K, Amounts>, key: K, by: Amounts) {
    let amounts = kept.entry(key).or_default();
    amounts.add(by);
    if *amounts == Amounts::default() {
        kept.remove(&key);
    }
}

#[cfg(test)]
mod tests;
