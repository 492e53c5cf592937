//! Typical mixes of jobs, generated from a fixed seed.

use evenkeel_core::schedule::{Cron, CronSchedule, Schedule};
use evenkeel_core::{Definition, Span, Timestamp, Zone};
use serde::Serialize;

use crate::workload::noop_every;

/// A pseudo-random number generator. The seed determines the sequence.
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0.0..1.0`.
    pub fn share(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number with an approximately normal distribution: mean 0, rarely beyond 3 or -3.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    Daily,
    /// Mostly hourly and quarter-hourly jobs, and some daily jobs.
    Frequent,
    /// Jobs of which a few take hours and most take seconds.
    HeavyTailed,
    /// Jobs with cron schedules, or with intervals that do not divide an hour or a day.
    Odd,
}

/// A kind of job and its percentage in the mix.
struct Kind {
    percent: u64,
    definition: Definition,
}

pub struct Kinds {
    mix: Mix,
    kinds: Vec<Kind>,
}

/// A generated job.
#[derive(Copy, Clone)]
pub struct GeneratedJob<'a> {
    pub definition: &'a Definition,
    /// Duration of one run.
    pub cost: Span,
    pub seed: u64,
    /// When the job is created.
    pub at: Timestamp,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Mix {
    pub const ALL: [Self; 4] = [Self::Daily, Self::Frequent, Self::HeavyTailed, Self::Odd];

    pub const fn label(self) -> &'static str {
        match self {
            Self::Daily => "mostly daily",
            Self::Frequent => "hourly and every 15 minutes",
            Self::HeavyTailed => "heavy-tailed durations",
            Self::Odd => "cron and odd intervals",
        }
    }

    pub fn kinds(self) -> anyhow::Result<Kinds> {
        let every: &[(u64, u64)] = match self {
            Self::Daily => &[(78, DAY), (8, 12 * HOUR), (6, 7 * DAY), (4, 6 * HOUR), (4, HOUR)],
            Self::Frequent => {
                &[(35, HOUR), (25, 15 * MINUTE), (10, 30 * MINUTE), (5, 5 * MINUTE), (25, DAY)]
            }
            Self::HeavyTailed => &[(55, DAY), (25, HOUR), (10, 6 * HOUR), (10, 7 * DAY)],
            Self::Odd => &[
                (20, DAY),
                (15, 20 * MINUTE),
                (15, 7 * HOUR),
                (10, 36 * HOUR),
                (10, 7 * DAY),
                (5, 25 * MINUTE),
                (5, 100 * MINUTE),
            ],
        };
        let mut kinds = Vec::new();
        for (percent, secs) in every {
            let definition = noop_every(Span::from_secs(*secs))?;
            kinds.push(Kind { percent: *percent, definition });
        }
        if self == Self::Odd {
            for (percent, expression, zone) in [
                (8, "0 9 * * 1-5", "Europe/Berlin"),
                (6, "0 0 * * *", "UTC"),
                (6, "0 * * * *", "UTC"),
            ] {
                let cron = Cron::parse(expression)?.resolved(0, true);
                let schedule = Schedule::Cron(CronSchedule { cron, max_duration: None });
                let timezone = Zone::get(zone)?;
                let definition = Definition { timezone, ..Definition::noop(schedule) };
                kinds.push(Kind { percent, definition });
            }
        }
        Ok(Kinds { mix: self, kinds })
    }
}

const FIRST_DAY: i64 = 1_764_547_200;
/// The days on which jobs are created: Monday to Friday of two weeks.
const DAYS: [u64; 10] = [0, 1, 2, 3, 4, 7, 8, 9, 10, 11];

impl Kinds {
    /// Returns the time at which evenness is measured: two weeks after the first job is created.
    pub fn end() -> Timestamp {
        Timestamp::from_micros((FIRST_DAY + 14 * 86_400) * 1_000_000)
    }

    /// Generates `count` jobs in the order of their creation: 70 % are created one by one during
    /// the working hours of two weeks, and 30 % in three bulk imports.
    pub fn jobs(&self, count: u64) -> Vec<GeneratedJob<'_>> {
        let mut dice = Dice::new(0x5eed ^ count);
        let mut jobs: Vec<GeneratedJob<'_>> = (0..count).map(|_| self.job(&mut dice)).collect();
        jobs.sort_by_key(|job| job.at);
        jobs
    }

    fn job(&self, dice: &mut Dice) -> GeneratedJob<'_> {
        let definition = self.definition(dice.roll() % 100);
        let at = match dice.share() {
            // An import takes one minute.
            share if share < 0.3 => {
                let day = [1, 4, 9][(share * 10.0) as usize];
                (day * DAY + 10 * HOUR) as f64 + dice.share() * 60.0
            }
            _ => {
                let day = DAYS[(dice.roll() % 10) as usize];
                (day * DAY + 8 * HOUR) as f64 + dice.share() * (10 * HOUR) as f64
            }
        };
        let at = Timestamp::from_micros(FIRST_DAY * 1_000_000 + (at * 1e6) as i64);
        let secs = self.seconds(definition, dice);
        let cost = Span::from_micros((secs * 1e6) as u64);
        GeneratedJob { definition, cost, seed: dice.roll(), at }
    }

    fn definition(&self, mut percent: u64) -> &Definition {
        for kind in &self.kinds {
            if percent < kind.percent {
                return &kind.definition;
            }
            percent -= kind.percent;
        }
        &self.kinds[0].definition
    }

    /// Returns the duration of a run in seconds.
    fn seconds(&self, definition: &Definition, dice: &mut Dice) -> f64 {
        let longest = match &definition.schedule {
            // A run takes at most half of its job's interval.
            Schedule::Interval(interval) => interval.every().as_micros() as f64 / 2e6,
            _ => f64::INFINITY,
        };
        let secs = match self.mix {
            Mix::Daily | Mix::Odd => 30.0 * dice.bell().exp(),
            Mix::Frequent => 5.0 * dice.bell().exp(),
            // Run durations have a Pareto distribution. Run durations are capped, because the
            // longest of a million runs would take days.
            Mix::HeavyTailed => 2.0 * (1.0 - dice.share()).powf(-1.0 / 1.1),
        };
        secs.min(4.0 * HOUR as f64).min(longest)
    }
}
