//! How evenly load is spread.

use super::loads::{Loads, Measure};
use super::rhythm::Hours;
use crate::blackout::Blackouts;
use crate::time::Timestamp;

/// What is compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Grain {
    /// The slots of the next 24 hours.
    Slot,
    /// Their hours, by the clock, UTC: the first of them begins at midnight.
    Hour,
}

/// How evenly the load of the next 24 hours is spread.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spread {
    /// The share of the load that is where an even spread could have it: 1 is as even as these jobs
    /// allow.
    pub score: f64,
    /// The most that lies in one.
    pub peak: f64,
    /// Which one that is, counted from the first.
    pub peak_at: usize,
    /// What lies in one on average.
    pub mean: f64,
    /// No spread of these jobs has a lower peak.
    pub least_peak: f64,
}

/// Load that can be moved, and the parts of the day that accept it.
struct Movable {
    amount: f64,
    accepted: Vec<bool>,
}

/// The load of a day, and what could become of it.
struct Day {
    /// What lies in each part.
    load: Vec<f64>,
    /// What of it nobody can move.
    ground: Vec<f64>,
    /// The heaviest that a part holds and that cannot be divided.
    heaviest: Vec<f64>,
    movable: Vec<Movable>,
    /// Parts that lie in the day.
    covered: Vec<bool>,
}

impl Loads {
    /// What each slot of the horizon holds; cost in seconds.
    pub fn by_slot(&self, measure: Measure) -> Vec<f64> {
        let unit = self.unit(measure);
        let mut loads: Vec<f64> =
            self.sums.of(measure).iter().map(|sum| *sum as f64 * unit).collect();
        self.add_often(&mut loads, measure);
        loads.iter_mut().for_each(|load| *load = load.max(0.0));
        loads
    }

    /// What each hour of the day, UTC, holds of the next 24 hours.
    pub fn by_hour(&self, measure: Measure) -> [f64; 24] {
        let mut hours = [0.0; 24];
        for (slot, load) in self.by_slot(measure)[..self.horizon().day()].iter().enumerate() {
            hours[self.hour_of(slot)] += load;
        }
        hours
    }

    /// How even they are.
    pub fn spread(&self, measure: Measure, grain: Grain) -> Spread {
        let day = self.day(measure);
        let day = match grain {
            Grain::Slot => day,
            Grain::Hour => day.folded(24, |slot| self.hour_of(slot)),
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
        // After a removal it is not known what the heaviest is that is left.
        let left = load.iter().zip(&ground).map(|(load, ground)| load - ground);
        let heaviest = self.heaviest.iter().zip(left);
        let heaviest = heaviest.map(|(heavy, left)| (*heavy as f64 / 1e6).min(left)).collect();
        let hours: Vec<Vec<bool>> = self.hours.iter().map(|hours| self.accepted(hours)).collect();
        let movable = self.movable.iter().map(|(place, amounts)| {
            let window = if measure == Measure::Next { place.window } else { day };
            let accepts =
                |slot: usize| slot < window && place.hours.is_none_or(|which| hours[which][slot]);
            let mut accepted: Vec<bool> = (0..day).map(accepts).collect();
            // Nothing of the day would do, so all of it has to.
            if !accepted.contains(&true) {
                accepted.fill(true);
            }
            Movable { amount: (amounts.of(measure) as f64 * unit).max(0.0), accepted }
        });
        let movable = movable.collect();
        Day { load, ground, heaviest, movable, covered: vec![true; day] }
    }

    /// The slots of the first day in which such jobs would start.
    fn accepted(&self, hours: &Hours) -> Vec<bool> {
        let grid = self.horizon().grid();
        let dark = Blackouts::new(&hours.dark, &hours.zone);
        let preferred = Blackouts::new(hours.preferred.as_slice(), &hours.zone);
        let accepts = |slot: usize| {
            let middle = grid.start + grid.slot * slot as i64 + grid.slot / 2;
            let middle = Timestamp::from_micros(middle);
            !dark.is_dark(middle) && (preferred.is_empty() || preferred.is_dark(middle))
        };
        (0..self.horizon().day()).map(accepts).collect()
    }

    /// What one of the sums is worth.
    fn unit(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Next | Measure::Runs => 1.0 / self.horizon().grid().whole() as f64,
            Measure::Cost => 1e-6,
        }
    }

    /// Adds jobs that may run at any time: a part of each to every slot.
    fn add_often(&self, loads: &mut [f64], measure: Measure) {
        let slot = self.horizon().slot.as_micros() as f64;
        for (period, amounts) in &self.often {
            let share = slot / period.as_micros().max(1) as f64;
            let amount = amounts.of(measure) as f64;
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
    /// The same in larger parts: each slot lies in `part(slot)`, one of `parts`.
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
        // The narrowest first: what has little choice takes it, the rest goes around.
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

    /// What no spread can be below: all of it everywhere, each kind where it may be, what cannot
    /// be moved, and what cannot be divided.
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

/// The level that `amount` rises to if it is poured on the accepted parts of `ground`.
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

/// Rounded up, unless only a rounding error is in the way.
fn whole(level: f64) -> f64 {
    (level - 1e-6).ceil().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::test_loads::{NOON, daily, every, loads_of, nine};
    use crate::time::Span;

    const MINUTE: Span = Span::from_secs(60);

    fn score(loads: &Loads) -> f64 {
        loads.spread(Measure::Runs, Grain::Slot).score
    }

    #[test]
    fn nothing_is_even() {
        let loads = loads_of([]);
        for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
            for grain in [Grain::Slot, Grain::Hour] {
                let spread = loads.spread(measure, grain);
                assert_eq!((spread.score, spread.peak, spread.mean), (1.0, 0.0, 0.0));
            }
        }
    }

    #[test]
    fn an_even_spread_scores_one_however_many_there_are() {
        for jobs in [1, 40_000] {
            let loads =
                loads_of((0..96).map(|slot| (daily(slot), jobs, MINUTE.saturating_mul(jobs))));
            for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
                for grain in [Grain::Slot, Grain::Hour] {
                    let spread = loads.spread(measure, grain);
                    assert!((spread.score - 1.0).abs() < 1e-9, "{measure:?} {grain:?}: {spread:?}");
                    assert!((spread.peak - spread.least_peak).abs() < 1e-6, "{spread:?}");
                }
            }
        }
    }

    #[test]
    fn three_jobs_in_one_slot_score_a_third() {
        let loads = loads_of([(daily(7), 3, MINUTE.saturating_mul(3))]);
        for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
            let spread = loads.spread(measure, Grain::Slot);
            assert!((spread.score - 1.0 / 3.0).abs() < 1e-9, "{measure:?}: {spread:?}");
        }
        let apart = loads_of((0..3).map(|slot| (daily(slot * 30), 1, MINUTE)));
        assert_eq!(score(&apart), 1.0);
    }

    #[test]
    fn millions_in_one_slot_score_next_to_nothing_and_two_slots_twice_that() {
        let one = loads_of([(daily(7), 3_000_000, MINUTE)]);
        assert!((score(&one) - 1.0 / 96.0).abs() < 1e-6);
        let two = loads_of([(daily(7), 1_500_000, MINUTE), (daily(50), 1_500_000, MINUTE)]);
        assert!((score(&two) - 2.0 / 96.0).abs() < 1e-6);
    }

    #[test]
    fn jobs_that_nobody_can_move_do_not_lower_it() {
        let mut loads = loads_of([(nine(), 50, MINUTE.saturating_mul(50))]);
        assert_eq!(score(&loads), 1.0);
        // The rest goes around them.
        let around = (0..96).filter(|slot| *slot != 36);
        around.for_each(|slot| loads.add(&daily(slot), 10, MINUTE));
        assert_eq!(score(&loads), 1.0);
        loads.add(&daily(36), 10, MINUTE);
        assert!(score(&loads) < 1.0);
    }

    #[test]
    fn hourly_jobs_can_only_be_spread_within_their_hour() {
        let hourly = |quarter: i64| every(3600, quarter * 900);
        let even = loads_of((0..4).map(|quarter| (hourly(quarter), 24, MINUTE)));
        assert_eq!(even.spread(Measure::Next, Grain::Slot).score, 1.0);
        assert_eq!(even.spread(Measure::Next, Grain::Slot).least_peak, 24.0);
        assert_eq!(score(&even), 1.0);
        let one = loads_of([(hourly(1), 96, MINUTE)]);
        assert_eq!(one.spread(Measure::Next, Grain::Slot).score, 0.25);
        assert_eq!(score(&one), 0.25);
    }

    #[test]
    fn the_heaviest_job_lies_somewhere() {
        let hour = Span::from_secs(3600);
        let mut loads = loads_of([(daily(5), 1, hour)]);
        (0..96).filter(|slot| *slot != 5).for_each(|slot| loads.add(&daily(slot), 1, MINUTE));
        let spread = loads.spread(Measure::Cost, Grain::Slot);
        assert_eq!((spread.score, spread.peak, spread.least_peak), (1.0, 3600.0, 3600.0));
        assert_eq!(spread.peak_at, 48 + 5);
        // With another on top it is no longer even.
        loads.add(&daily(5), 1, Span::from_secs(1800));
        assert!(loads.spread(Measure::Cost, Grain::Slot).score < 0.9);
    }

    #[test]
    fn jobs_that_prefer_some_hours_are_even_within_them() {
        let night = Hours {
            zone: crate::Zone::utc(),
            dark: Vec::new(),
            preferred: Some(crate::blackout::LocalHours {
                start: "22:00".parse().unwrap(),
                end: "02:00".parse().unwrap(),
            }),
        };
        let nightly = |slot| super::super::Rhythm { hours: Some(night.clone()), ..daily(slot) };
        let slots = (88..96).chain(0..8);
        let mut loads = loads_of(slots.map(|slot| (nightly(slot), 3, MINUTE)));
        let spread = loads.spread(Measure::Runs, Grain::Slot);
        assert_eq!((spread.score, spread.least_peak), (1.0, 3.0));
        loads.remove(&nightly(88), 3, MINUTE);
        loads.add(&nightly(89), 3, MINUTE);
        assert_eq!(score(&loads), 1.0 - 3.0 / 48.0);
    }

    #[test]
    fn hours_are_those_of_the_clock() {
        let loads = loads_of([(nine(), 2, MINUTE), (every(3600, 0), 1, MINUTE)]);
        let hours = loads.by_hour(Measure::Runs);
        assert_eq!(hours[9], 3.0);
        assert!((0..24).all(|hour| hour == 9 || hours[hour] == 1.0));
        assert_eq!(loads.spread(Measure::Runs, Grain::Hour).peak_at, 9);
        assert_eq!(loads.horizon().start, NOON);
        assert_eq!(loads.spread(Measure::Runs, Grain::Slot).peak_at, 21 * 4);
    }
}
