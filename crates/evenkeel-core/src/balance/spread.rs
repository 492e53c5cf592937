//! Measures how evenly runs and their cost are spread over time.

use std::collections::BTreeMap;

use super::loads::{Destination, Loads, Measure};

/// Whether the loads of time slots or of hours are compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// The time slots of the next 24 hours.
    Slot,
    /// The hours of the day in UTC; the first hour begins at midnight.
    Hour,
}

/// How evenly runs or their cost are spread over the next 24 hours.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spread {
    /// The evenness score from 0 to 1: the share of the load that is not above the ideal level of
    /// its time slot or hour. The evenness score is 1 if the load is as even as possible.
    pub score: f64,
    /// The highest load of any time slot or hour.
    pub peak: f64,
    /// The index of the time slot or hour with the highest load.
    pub peak_at: usize,
    /// The average load of a time slot or hour.
    pub mean: f64,
    /// The lowest possible peak load, if a rebalance moved the jobs in the best way.
    pub least_peak: f64,
}

/// Load that a rebalance can move, and the time slots or hours to which the load can move.
struct Movable {
    amount: f64,
    accepted: Vec<bool>,
}

/// The load of 24 hours, split into load that a rebalance can move and load that it cannot move.
struct Day {
    load: Vec<f64>,
    /// The load that a rebalance cannot move.
    ground: Vec<f64>,
    /// The highest cost of a single movable run in each time slot or hour.
    heaviest: Vec<f64>,
    movable: Vec<Movable>,
    /// False for hours of the day outside the balancing horizon.
    covered: Vec<bool>,
}

impl Loads {
    /// Returns the load of each time slot of the balancing horizon; cost is in seconds.
    pub fn by_slot(&self, measure: Measure) -> Vec<f64> {
        let unit = self.unit(measure);
        let mut loads: Vec<f64> =
            self.sums.of(measure).iter().map(|sum| *sum as f64 * unit).collect();
        self.add_often(&mut loads, measure);
        loads.iter_mut().for_each(|load| *load = load.max(0.0));
        loads
    }

    /// Returns the load of the next 24 hours for each hour of the day in UTC.
    pub fn by_hour(&self, measure: Measure) -> [f64; 24] {
        let mut hours = [0.0; 24];
        for (slot, load) in self.by_slot(measure)[..self.horizon().day()].iter().enumerate() {
            hours[self.hour_of(slot)] += load;
        }
        hours
    }

    /// Returns how evenly the runs of the next hour are spread over its seconds. Only jobs with an
    /// interval below 15 minutes count, because their start second is known. Returns `None` if no
    /// job has an interval below 15 minutes.
    pub fn spread_by_second(&self) -> Option<Spread> {
        self.seconds.spread(self.horizon().start)
    }

    pub fn spread(&self, measure: Measure, granularity: Granularity) -> Spread {
        let day = self.day(measure);
        let day = match granularity {
            Granularity::Slot => day,
            Granularity::Hour => day.folded(24, |slot| self.hour_of(slot)),
        };
        day.spread(measure != Measure::Cost)
    }

    fn day(&self, measure: Measure) -> Day {
        let (unit, day) = (self.unit(measure), self.horizon().day());
        let mut load = self.by_slot(measure);
        load.truncate(day);
        let mut ground: Vec<f64> =
            self.fixed.of(measure).iter().map(|sum| (*sum as f64 * unit).max(0.0)).collect();
        self.add_often(&mut ground, measure);
        // After a job is removed, the highest cost of a remaining run is unknown; it is at most the
        // remaining load.
        let left = load.iter().zip(&ground).map(|(load, ground)| load - ground);
        let heaviest = self.heaviest.iter().zip(left);
        let heaviest = heaviest.map(|(heavy, left)| (*heavy as f64 / 1e6).min(left)).collect();
        // The search window restricts only the next run of a job, not its later runs.
        let mut by_place: BTreeMap<Destination, i64> = BTreeMap::new();
        for (place, amounts) in &self.movable {
            let window = if measure == Measure::Next { place.window } else { day };
            let sum = by_place.entry(Destination { window, ..*place }).or_default();
            *sum = sum.saturating_add(*amounts.of(measure));
        }
        let movable = by_place.into_iter().map(|(place, amount)| {
            let accepts = |slot: usize| {
                let is_accepted = |which| self.accepted.accepts(which, slot);
                slot < place.window && place.hours.is_none_or(is_accepted)
            };
            let mut accepted: Vec<bool> = (0..day).map(accepts).collect();
            // If blackouts or preferred hours exclude all time slots of the day, all time slots
            // count as allowed.
            if !accepted.contains(&true) {
                accepted.fill(true);
            }
            Movable { amount: (amount as f64 * unit).max(0.0), accepted }
        });
        let movable = movable.collect();
        Day { load, ground, heaviest, movable, covered: vec![true; day] }
    }

    /// Returns the factor that converts a stored sum to runs or seconds.
    fn unit(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Next | Measure::Runs => 1.0 / self.horizon().grid().whole() as f64,
            Measure::Cost => 1e-6,
        }
    }

    /// Adds the load of periodic jobs in equal parts to every time slot, because periodic jobs may
    /// run at any time.
    fn add_often(&self, loads: &mut [f64], measure: Measure) {
        let slot = self.horizon().slot.as_micros() as f64;
        for (period, amounts) in &self.often {
            let share = slot / period.as_micros().max(1) as f64;
            let amount = *amounts.of(measure) as f64;
            let (each, slots) = match measure {
                Measure::Next => (amount * share.min(1.0), (1.0 / share).ceil() as usize),
                Measure::Runs => (amount * share, loads.len()),
                Measure::Cost => (amount * share * 1e-6, loads.len()),
            };
            loads.iter_mut().take(slots).for_each(|load| *load += each);
        }
    }

    fn hour_of(&self, slot: usize) -> usize {
        let grid = self.horizon().grid();
        let begin = grid.start + grid.slot * slot as i64;
        (begin.div_euclid(HOUR_MICROS).rem_euclid(24)) as usize
    }
}

const HOUR_MICROS: i64 = 3_600_000_000;

impl Day {
    /// Combines time slots into `parts` longer time ranges; `part(slot)` is the index of the range
    /// that contains `slot`.
    fn folded(&self, parts: usize, part: impl Fn(usize) -> usize) -> Self {
        let sum = |of: &[f64]| {
            let mut sums = vec![0.0; parts];
            of.iter().enumerate().for_each(|(slot, load)| sums[part(slot)] += load);
            sums
        };
        let any = |of: &[bool]| {
            let mut any = vec![false; parts];
            of.iter().enumerate().for_each(|(slot, is)| any[part(slot)] |= is);
            any
        };
        let mut heaviest = vec![0.0_f64; parts];
        for (slot, heavy) in self.heaviest.iter().enumerate() {
            heaviest[part(slot)] = heaviest[part(slot)].max(*heavy);
        }
        let movable = self.movable.iter();
        let movable = movable.map(|it| Movable { amount: it.amount, accepted: any(&it.accepted) });
        Self {
            load: sum(&self.load),
            ground: sum(&self.ground),
            heaviest,
            movable: movable.collect(),
            covered: any(&self.covered),
        }
    }

    fn spread(mut self, in_wholes: bool) -> Spread {
        let total: f64 = self.load.iter().sum();
        let parts = self.covered.iter().filter(|covered| **covered).count().max(1);
        let peak_at = (0..self.load.len())
            .fold(0, |best, part| if self.load[part] > self.load[best] { part } else { best });
        let peak = self.load.get(peak_at).copied().unwrap_or(0.0);
        let least_peak = self.least_peak(in_wholes).min(peak);
        // Load that may move to the fewest time slots is distributed first, so that more flexible
        // load fills the other time slots.
        self.movable.sort_by_key(|it| it.accepted.iter().filter(|accepted| **accepted).count());
        let mut ideal = self.ground.clone();
        for it in &self.movable {
            let level = level_of(&ideal, &it.accepted, it.amount);
            let poured = ideal.iter_mut().zip(&it.accepted).filter(|(_, accepted)| **accepted);
            poured.for_each(|(ideal, _)| *ideal = ideal.max(level));
        }
        let over = self.load.iter().zip(&ideal).zip(self.ground.iter().zip(&self.heaviest));
        let over = over.map(|((load, ideal), (ground, heaviest))| {
            let allowed =
                if in_wholes { ideal.max(whole(*ideal)) } else { ideal.max(ground + heaviest) };
            (load - allowed).max(0.0)
        });
        let score = if total > 0.0 { 1.0 - over.sum::<f64>() / total } else { 1.0 };
        let score = score.clamp(0.0, 1.0);
        Spread { score, peak, peak_at, mean: total / parts as f64, least_peak }
    }

    /// Returns a lower bound for the peak load after any rebalance.
    fn least_peak(&self, in_wholes: bool) -> f64 {
        let all: f64 = self.movable.iter().map(|it| it.amount).sum();
        let mut least = level_of(&self.ground, &self.covered, all);
        for it in &self.movable {
            least = least.max(level_of(&self.ground, &it.accepted, it.amount));
        }
        let least = if in_wholes {
            whole(least)
        } else {
            self.heaviest.iter().copied().fold(least, f64::max)
        };
        self.ground.iter().copied().fold(least, f64::max)
    }
}

/// Returns the load level if `amount` is spread evenly over the accepted time slots or hours, on
/// top of the load `ground` that cannot move.
fn level_of(ground: &[f64], accepted: &[bool], amount: f64) -> f64 {
    let parts = ground.iter().zip(accepted).filter(|(_, accepted)| **accepted);
    let mut sorted: Vec<f64> = parts.map(|(ground, _)| *ground).collect();
    sorted.sort_by(f64::total_cmp);
    let mut below = 0.0;
    for (index, ground) in sorted.iter().enumerate() {
        below += ground;
        let level = (amount + below) / (index + 1) as f64;
        if sorted.get(index + 1).is_none_or(|next| level <= *next) {
            return level;
        }
    }
    0.0
}

/// Rounds up to a whole number, but ignores floating-point errors.
fn whole(level: f64) -> f64 {
    (level - 1e-6).ceil().max(0.0)
}

#[cfg(test)]
mod tests;
