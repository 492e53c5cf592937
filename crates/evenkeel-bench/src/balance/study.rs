//! How evenly the ways to choose a first time spread jobs.

use std::collections::HashMap;

use evenkeel_core::balance::{
    BalanceSettings, Granularity, Horizon, JobToPlace, LoadProfile, Loads, Measure, NodeTurn,
    Policy, Recurrence, Spread, first_time,
};
use evenkeel_core::{Schedule, Span, Timestamp};
use serde::Serialize;

use super::mixes::{Dice, Kinds, Made, Mix};

/// How a first time is chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// One interval after the job is made.
    NowPlusInterval,
    /// Any time within one interval.
    Jitter,
    /// By a hash of its id.
    Hash,
    /// Where the fewest jobs have their next run.
    Next,
    /// Where all its runs together meet the least load.
    Projected,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::NowPlusInterval, Self::Jitter, Self::Hash, Self::Next, Self::Projected];

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NowPlusInterval => "now + interval",
            Self::Jitter => "random jitter",
            Self::Hash => "hash",
            Self::Next => "next",
            Self::Projected => "projected",
        }
    }

    const fn policy(self) -> Option<Policy> {
        match self {
            Self::Next => Some(Policy::Next),
            Self::Projected => Some(Policy::Projected),
            Self::NowPlusInterval | Self::Jitter | Self::Hash => None,
        }
    }
}

/// What a way makes of a mix.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Which mix.
    pub mix: Mix,
    /// Of so many jobs.
    pub jobs: u64,
    /// Which way.
    pub way: Way,
    /// By runs, in slots of the next 24 hours.
    pub runs: Figures,
    /// By what they cost.
    pub cost: Figures,
}

/// How even it is.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Figures {
    /// See [`Spread::score`].
    pub score: f64,
    /// The highest slot, as a multiple of the average one.
    pub peak_to_mean: f64,
    /// What no spread of these jobs is below.
    pub least_peak_to_mean: f64,
}

impl From<Spread> for Figures {
    fn from(spread: Spread) -> Self {
        let mean = spread.mean.max(f64::MIN_POSITIVE);
        let [peak_to_mean, least_peak_to_mean] =
            [spread.peak, spread.least_peak].map(|it| it / mean);
        Self { score: spread.score, peak_to_mean, least_peak_to_mean }
    }
}

/// What is known of load, as a node knows it: counted by rhythm, read anew for every slot.
pub struct Plan {
    settings: BalanceSettings,
    /// By interval and phase; schedules by the clock by their place among the kinds.
    counts: HashMap<(Span, u32), Count>,
    clocks: Vec<Count>,
    /// Every job.
    each: Vec<(LoadProfile, Span)>,
    /// As of the slot of the last placement.
    loads: Loads,
}

struct Count {
    profile: LoadProfile,
    jobs: u64,
    cost: Span,
}

impl Plan {
    /// Of no jobs.
    pub fn new(policy: Policy) -> Self {
        let settings = BalanceSettings { policy, ..BalanceSettings::default() };
        let loads = Loads::new(Horizon::new(&settings, Timestamp::MIN));
        Self { settings, counts: HashMap::new(), clocks: Vec::new(), each: Vec::new(), loads }
    }

    /// Load as it is known at `now`.
    pub fn loads_at(&mut self, now: Timestamp) -> &Loads {
        let horizon = Horizon::new(&self.settings, now);
        if self.loads.horizon() != horizon {
            self.loads = Loads::new(horizon);
            for count in self.counts.values().chain(&self.clocks) {
                self.loads.add(&count.profile, count.jobs, count.cost);
            }
        }
        &self.loads
    }

    /// Where a job would be placed.
    pub fn place(&mut self, job: &Made<'_>) -> Option<Timestamp> {
        let settings = self.settings;
        let loads = self.loads_at(job.at);
        first_time(&settings, to_place(job), loads, loads, NodeTurn::ALONE)
    }

    /// Counts a job that has its first time then.
    pub fn count(&mut self, job: &Made<'_>, time: Timestamp, at_once: bool) {
        let Some(profile) = LoadProfile::of(job.definition, time) else { return };
        if at_once {
            self.loads.add(&profile, 1, job.cost);
        }
        self.each.push((profile.clone(), job.cost));
        let count = match profile.recurrence {
            Recurrence::Every { every, phase } => self
                .counts
                .entry((every, phase))
                .or_insert_with(|| Count { profile, jobs: 0, cost: Span::ZERO }),
            _ => {
                let known = self.clocks.iter().position(|count| count.profile == profile);
                let index = known.unwrap_or(self.clocks.len());
                if known.is_none() {
                    self.clocks.push(Count { profile, jobs: 0, cost: Span::ZERO });
                }
                &mut self.clocks[index]
            }
        };
        count.jobs += 1;
        count.cost = count.cost.saturating_add(job.cost);
    }
}

/// A job as placement sees it.
pub fn to_place<'a>(job: &Made<'a>) -> JobToPlace<'a> {
    JobToPlace { definition: job.definition, seed: job.seed, cost: job.cost, after: job.at }
}

/// Places all jobs in one way.
pub fn placed(jobs: &[Made<'_>], way: Way) -> Plan {
    let mut plan = Plan::new(way.policy().unwrap_or_default());
    let mut dice = Dice::new(0xd1ce);
    for job in jobs {
        let time = match way.policy() {
            Some(_) => plan.place(job),
            None => by_itself(job, way, &mut dice),
        };
        if let Some(time) = time {
            plan.count(job, time, way.policy().is_some());
        }
    }
    plan
}

/// Compares all ways.
pub fn compare(mix: Mix, count: u64) -> anyhow::Result<Vec<Outcome>> {
    let kinds = mix.kinds()?;
    let jobs = kinds.jobs(count);
    let outcome = |way: Way| {
        let plan = placed(&jobs, way);
        // One by one, so that the heaviest of each slot is known.
        let mut loads = Loads::new(Horizon::new(&plan.settings, Kinds::end()));
        for (profile, cost) in &plan.each {
            loads.add(profile, 1, *cost);
        }
        let of = |measure| Figures::from(loads.spread(measure, Granularity::Slot));
        Outcome { mix, jobs: count, way, runs: of(Measure::Runs), cost: of(Measure::Cost) }
    };
    Ok(Way::ALL.into_iter().map(outcome).collect())
}

fn by_itself(job: &Made<'_>, way: Way, dice: &mut Dice) -> Option<Timestamp> {
    let Schedule::Interval(interval) = &job.definition.schedule else {
        return job.definition.timetable().first_after(job.at);
    };
    let every = interval.every();
    let later = match way {
        Way::Jitter => Span::from_micros(dice.roll() % every.as_micros() + 1),
        Way::Hash => {
            let since = job.at.since(Timestamp::MIN).as_micros() % every.as_micros();
            let wanted = job.seed % every.as_micros();
            Span::from_micros((wanted + every.as_micros() - since - 1) % every.as_micros() + 1)
        }
        Way::NowPlusInterval | Way::Next | Way::Projected => every,
    };
    job.at.checked_add(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_is_more_even_by_load_than_without_a_thought() {
        for mix in Mix::ALL {
            let outcomes = compare(mix, 500).unwrap();
            let score =
                |way| outcomes.iter().find(|it| it.way == way).map_or(0.0, |it| it.runs.score);
            for way in [Way::Next, Way::Projected] {
                assert!(score(way) > score(Way::NowPlusInterval), "{mix:?} {way:?}");
            }
        }
    }

    #[test]
    fn the_same_jobs_come_from_the_same_seed() {
        let kinds = Mix::HeavyTailed.kinds().unwrap();
        let told = |jobs: &[Made<'_>]| -> Vec<_> {
            jobs.iter().map(|job| (job.seed, job.at, job.cost)).collect()
        };
        assert_eq!(told(&kinds.jobs(100)), told(&kinds.jobs(100)));
    }

    #[test]
    fn a_first_time_without_a_thought_is_within_one_interval() {
        let kinds = Mix::Odd.kinds().unwrap();
        let mut dice = Dice::new(1);
        for job in kinds.jobs(1000) {
            let Schedule::Interval(interval) = &job.definition.schedule else { continue };
            for way in [Way::NowPlusInterval, Way::Jitter, Way::Hash] {
                let time = by_itself(&job, way, &mut dice).unwrap();
                assert!(time > job.at && time.since(job.at) <= interval.every(), "{way:?}");
            }
        }
    }
}
