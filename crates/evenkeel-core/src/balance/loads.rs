//! Counts runs and their cost per time slot.

use std::collections::BTreeMap;

use super::accepted::Accepted;
use super::hits::{Grid, micros};
use super::load_profile::{LoadProfile, Recurrence};
use super::seconds::Seconds;
use super::settings::BalanceSettings;
use crate::slot::Slot;
use crate::time::{Span, Timestamp};

/// The balancing horizon: the time span ahead in which load is counted. The balancing horizon is
/// seven days long, or 4,096 time slots if that is shorter, but at least one day.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Horizon {
    pub start: Timestamp,
    /// Length of a time slot.
    pub slot: Span,
    pub slots: usize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Number of jobs whose next run is in the time slot.
    Next,
    Runs,
    Cost,
}

/// The load of a set of jobs per time slot.
///
/// Memory use depends on the number of time slots, not on the number of jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Loads {
    horizon: Horizon,
    jobs: u64,
    pub(super) sums: Sums,
    /// The sum of all runs.
    total_runs: i128,
    /// The sum of all costs.
    total_cost: i128,
    /// The load of the first 24 hours that a rebalance cannot move.
    pub(super) fixed: Sums,
    /// For each time slot of the first 24 hours, the highest known cost of one run. If one call of
    /// `add` adds several jobs, only the average cost of these jobs is known.
    pub(super) heaviest: Vec<i64>,
    /// The load of the first 24 hours that a rebalance can move, grouped by the time slots to which
    /// the load can move.
    pub(super) movable: BTreeMap<Destination, Amounts>,
    /// The time slots in which jobs with blackouts or preferred hours may start.
    pub(super) accepted: Accepted,
    /// Number and cost of periodic jobs, which may run at any time, by period.
    pub(super) often: BTreeMap<Span, Amounts>,
    /// Number of jobs per start second, for the jobs whose start second is known.
    pub(super) seconds: Seconds,
    /// The load of the next month.
    pub(super) far: MonthLoads,
}

/// A value for each [`Measure`]; runs are in units of [`Grid::whole`], costs in microseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PerMeasure<T> {
    pub next: T,
    pub runs: T,
    pub cost: T,
}

pub(super) type Amounts = PerMeasure<i64>;
/// Sums per time slot.
pub(super) type Sums = PerMeasure<Vec<i64>>;

/// The time slots to which a rebalance may move a job: the first `window` time slots, except time
/// slots that the job's blackouts or preferred hours exclude.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Destination {
    pub window: usize,
    /// An index into [`Accepted::slots`].
    pub hours: Option<usize>,
}

/// The load of the next month, in time slots of at least 15 minutes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MonthLoads {
    pub grid: Grid,
    /// Number of jobs whose next run is in the time slot.
    pub next: Vec<i32>,
    /// Runs of jobs whose interval is longer than the [`Horizon`]. Numbers of runs are stored as
    /// `f64`, because converting integers would take most of the time of choosing a start time.
    pub slow_runs: Vec<f64>,
    pub slow_cost: Vec<f64>,
}

const DAY: Span = Span::from_secs(86_400);
const WEEK: Span = Span::from_secs(7 * 86_400);
/// Maximum number of time slots of the balancing horizon, unless one day has more.
const SLOTS_MAX: u64 = 4096;
/// Maximum number of different search windows (see `Destination`). If a day has more time slots
/// than this maximum, the lengths of search windows are rounded down. Each search window costs time
/// whenever the evenness of the load is computed.
const WINDOWS_MAX: usize = 512;
/// Maximum time from now to the first run time that the balancer chooses for a job.
pub(super) const FAR: Span = Span::from_secs(31 * 86_400);

impl Horizon {
    /// The balancing horizon begins with the time slot that contains `now`.
    pub fn new(settings: &BalanceSettings, now: Timestamp) -> Self {
        let slot = settings.slot.max(Span::from_secs(1));
        let start = now.as_micros() - now.as_micros().rem_euclid(micros(slot));
        // The horizon always covers a whole day, however short the time slots are.
        let most = SLOTS_MAX.max(DAY.as_micros() / slot.as_micros());
        let slots = (WEEK.as_micros() / slot.as_micros()).clamp(1, most);
        Self { start: Timestamp::from_micros(start), slot, slots: slots as usize }
    }

    /// Number of time slots in the first 24 hours.
    pub fn day(self) -> usize {
        self.slots.min((DAY.as_micros() / self.slot.as_micros()).max(1) as usize)
    }

    /// In microseconds.
    pub(super) fn length(self) -> i64 {
        micros(self.slot) * self.slots as i64
    }

    pub(super) fn grid(self) -> Grid {
        Grid { start: self.start.as_micros(), slot: micros(self.slot), slots: self.slots }
    }

    /// True if a rebalance may move jobs with this load profile to other start times.
    pub(super) fn is_movable(self, profile: &LoadProfile) -> bool {
        matches!(profile.recurrence, Recurrence::Every { every, .. } if !profile.fixed && every >= self.slot)
    }
}

impl<T> PerMeasure<T> {
    pub fn of(&self, measure: Measure) -> &T {
        match measure {
            Measure::Next => &self.next,
            Measure::Runs => &self.runs,
            Measure::Cost => &self.cost,
        }
    }
}

impl Sums {
    fn new(slots: usize) -> Self {
        Self { next: vec![0; slots], runs: vec![0; slots], cost: vec![0; slots] }
    }

    fn add(&mut self, slot: usize, by: Amounts) {
        let add = |sum: &mut i64, by: i64| *sum = sum.saturating_add(by);
        add(&mut self.next[slot], by.next);
        add(&mut self.runs[slot], by.runs);
        add(&mut self.cost[slot], by.cost);
    }
}

impl Amounts {
    fn add(&mut self, by: Self) {
        self.next = self.next.saturating_add(by.next);
        self.runs = self.runs.saturating_add(by.runs);
        self.cost = self.cost.saturating_add(by.cost);
    }
}

impl Loads {
    pub fn new(horizon: Horizon) -> Self {
        let far_slot = horizon.slot.max(Slot::LENGTH);
        let start = horizon.start.as_micros();
        let far = Grid {
            start: start - start.rem_euclid(micros(far_slot)),
            slot: micros(far_slot),
            // Two extra time slots are needed, because the first time slot may begin in the past
            // and the last time slot is incomplete.
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
            far: MonthLoads {
                grid: far,
                next: vec![0; far.slots],
                slow_runs: vec![0.0; far.slots],
                slow_cost: vec![0.0; far.slots],
            },
        }
    }

    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Adds the load of `jobs` jobs with this load profile. `cost` is the total cost of one run of
    /// each of the jobs.
    pub fn add(&mut self, profile: &LoadProfile, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_add(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(profile, jobs, micros(cost));
    }

    pub fn remove(&mut self, profile: &LoadProfile, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_sub(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(profile, -jobs, -micros(cost));
    }

    fn change(&mut self, profile: &LoadProfile, jobs: i64, cost: i64) {
        if let Recurrence::Often(period) = profile.recurrence {
            let by = Amounts { next: jobs, runs: jobs, cost };
            return add_to(&mut self.often, period, by);
        }
        if let Recurrence::Every { every, phase } = profile.recurrence {
            self.seconds.change(every, phase, jobs);
        }
        let grid = self.horizon.grid();
        let (day, whole) = (self.horizon.day(), grid.whole());
        let is_movable = self.horizon.is_movable(profile);
        let heavy = if jobs > 0 { cost / jobs } else { 0 };
        let mut of_day = Amounts::default();
        let mut first = None;
        let Self { sums, total_runs, total_cost, fixed, heaviest, .. } = self;
        grid.visit(profile, |hit| {
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
            let place = self.place_of(profile);
            add_to(&mut self.movable, place, of_day);
        }
        self.change_far(profile, jobs, cost, first);
    }

    fn change_far(&mut self, profile: &LoadProfile, jobs: i64, cost: i64, first: Option<usize>) {
        let near = self.horizon.grid();
        let MonthLoads { grid, next, slow_runs, slow_cost } = &mut self.far;
        let first = match first {
            Some(slot) if grid.slot == near.slot => Some(slot),
            _ => grid.first_of(profile, near.start),
        };
        if let Some(slot) = first {
            let sum = i64::from(next[slot]).saturating_add(jobs);
            next[slot] = i32::try_from(sum.max(0)).unwrap_or(i32::MAX);
        }
        let length = near.end() - near.start;
        if matches!(profile.recurrence, Recurrence::Every { every, .. } if micros(every) > length) {
            grid.visit(profile, |hit| {
                slow_runs[hit.slot] += jobs as f64;
                slow_cost[hit.slot] += cost as f64;
            });
        }
    }

    /// Returns the time slots to which a rebalance may move jobs with this load profile.
    fn place_of(&mut self, profile: &LoadProfile) -> Destination {
        let Recurrence::Every { every, .. } = profile.recurrence else {
            return Destination { window: self.horizon.day(), hours: None };
        };
        let window = (every.as_micros() / self.horizon.slot.as_micros()).max(1);
        let day = self.horizon.day();
        let window = usize::try_from(window).unwrap_or(usize::MAX).min(day);
        let window = (window - window % day.div_ceil(WINDOWS_MAX)).max(1);
        // Preferred hours are ignored for jobs that run more often than daily, because they run at
        // all hours of the day.
        let hours = profile.hours.as_ref().filter(|_| every >= DAY);
        let hours = hours.and_then(|hours| self.accepted.index_of(hours, self.horizon));
        Destination { window, hours }
    }

    /// Average cost of a run, in microseconds per unit of [`Grid::whole`].
    pub(super) fn average_cost(&self) -> f64 {
        if self.total_runs > 0 { self.total_cost as f64 / self.total_runs as f64 } else { 0.0 }
    }

    /// Counts the runs between two boundaries of time slots. For times beyond the balancing
    /// horizon, counts the jobs whose next run is in the time slot of `from`.
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

    pub fn jobs(&self) -> u64 {
        self.jobs
    }
}

/// Adds `by` to the amounts of `key`, and removes the key when all its amounts are zero.
fn add_to<K: Ord + Copy>(kept: &mut BTreeMap<K, Amounts>, key: K, by: Amounts) {
    let amounts = kept.entry(key).or_default();
    amounts.add(by);
    if *amounts == Amounts::default() {
        kept.remove(&key);
    }
}

#[cfg(test)]
mod tests;
