//! Compares how evenly the placement policies spread runs over time.

use std::collections::HashMap;

use evenkeel_core::balance::{
    BalanceSettings, Granularity, Horizon, JobToPlace, LoadProfile, Loads, Measure, NodeTurn,
    Policy, Recurrence, Spread, first_time,
};
use evenkeel_core::{Schedule, Span, Timestamp};
use serde::Serialize;

use super::mixes::{Dice, GeneratedJob, Kinds, Mix};

#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The first run is one interval after the job is created.
    NowPlusInterval,
    /// The first run is at a random time within one interval.
    Jitter,
    /// A hash of the job's id determines the first run time.
    Hash,
    /// The first run is in the time slot in which the fewest jobs have their next run.
    Next,
    /// The first run is chosen so that all runs of the job together meet the least load.
    Projected,
}

impl Strategy {
    pub const ALL: [Self; 5] =
        [Self::NowPlusInterval, Self::Jitter, Self::Hash, Self::Next, Self::Projected];

    pub const fn label(self) -> &'static str {
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

/// How evenly one policy spreads the runs of one mix over time.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub mix: Mix,
    pub jobs: u64,
    pub way: Strategy,
    /// Evenness of the number of runs per time slot in the next 24 hours.
    pub runs: Figures,
    /// Evenness of the total run duration per time slot.
    pub cost: Figures,
}

#[derive(Copy, Clone, Debug, Serialize)]
pub struct Figures {
    /// See [`Spread::score`].
    pub score: f64,
    /// Load of the fullest time slot divided by the mean load of a slot.
    pub peak_to_mean: f64,
    /// The lowest `peak_to_mean` that any choice of start times could reach for these jobs.
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

/// Numbers of jobs by load profile (the time slots of a job's runs), from which the load per time
/// slot is computed. The load per time slot is recomputed whenever a new time slot begins.
pub struct Plan {
    settings: BalanceSettings,
    /// Number of jobs with each interval and start offset.
    counts: HashMap<(Span, u32), Count>,
    clocks: Vec<Count>,
    each: Vec<(LoadProfile, Span)>,
    /// Load per time slot, computed in the time slot in which the last start time was chosen.
    loads: Loads,
}

struct Count {
    profile: LoadProfile,
    jobs: u64,
    cost: Span,
}

impl Plan {
    pub fn new(policy: Policy) -> Self {
        let settings = BalanceSettings { policy, ..BalanceSettings::default() };
        let loads = Loads::new(Horizon::new(&settings, Timestamp::MIN));
        Self { settings, counts: HashMap::new(), clocks: Vec::new(), each: Vec::new(), loads }
    }

    /// Returns the load per time slot, as of `now`.
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

    /// Returns the first run time that the policy chooses for the job.
    pub fn place(&mut self, job: &GeneratedJob<'_>) -> Option<Timestamp> {
        let settings = self.settings;
        let loads = self.loads_at(job.at);
        first_time(&settings, to_place(job), loads, loads, NodeTurn::ALONE)
    }

    /// Adds a job whose first run is at `time`.
    pub fn count(&mut self, job: &GeneratedJob<'_>, time: Timestamp, at_once: bool) {
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

pub fn to_place<'a>(job: &GeneratedJob<'a>) -> JobToPlace<'a> {
    JobToPlace { definition: job.definition, seed: job.seed, cost: job.cost, after: job.at }
}

pub fn placed(jobs: &[GeneratedJob<'_>], way: Strategy) -> Plan {
    let mut plan = Plan::new(way.policy().unwrap_or_default());
    let mut dice = Dice::new(0xd1ce);
    for job in jobs {
        let time = match way.policy() {
            Some(_) => plan.place(job),
            None => first_time_without_load(job, way, &mut dice),
        };
        if let Some(time) = time {
            plan.count(job, time, way.policy().is_some());
        }
    }
    plan
}

pub fn compare(mix: Mix, count: u64) -> anyhow::Result<Vec<Outcome>> {
    let kinds = mix.kinds()?;
    let jobs = kinds.jobs(count);
    let outcome = |way: Strategy| {
        let plan = placed(&jobs, way);
        // Jobs are added one by one, because `least_peak_to_mean` depends on the longest run of
        // each time slot.
        let mut loads = Loads::new(Horizon::new(&plan.settings, Kinds::end()));
        for (profile, cost) in &plan.each {
            loads.add(profile, 1, *cost);
        }
        let of = |measure| Figures::from(loads.spread(measure, Granularity::Slot));
        Outcome { mix, jobs: count, way, runs: of(Measure::Runs), cost: of(Measure::Cost) }
    };
    Ok(Strategy::ALL.into_iter().map(outcome).collect())
}

fn first_time_without_load(
    job: &GeneratedJob<'_>,
    way: Strategy,
    dice: &mut Dice,
) -> Option<Timestamp> {
    let Schedule::Interval(interval) = &job.definition.schedule else {
        return job.definition.timetable().first_after(job.at);
    };
    let every = interval.every();
    let later = match way {
        Strategy::Jitter => Span::from_micros(dice.roll() % every.as_micros() + 1),
        Strategy::Hash => {
            let since = job.at.since(Timestamp::MIN).as_micros() % every.as_micros();
            let phase = job.seed % every.as_micros();
            Span::from_micros((phase + every.as_micros() - since - 1) % every.as_micros() + 1)
        }
        Strategy::NowPlusInterval | Strategy::Next | Strategy::Projected => every,
    };
    job.at.checked_add(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_policies_spread_every_mix_more_evenly_than_now_plus_interval() {
        for mix in Mix::ALL {
            let outcomes = compare(mix, 500).unwrap();
            let score =
                |way| outcomes.iter().find(|it| it.way == way).map_or(0.0, |it| it.runs.score);
            for way in [Strategy::Next, Strategy::Projected] {
                assert!(score(way) > score(Strategy::NowPlusInterval), "{mix:?} {way:?}");
            }
        }
    }

    #[test]
    fn generated_jobs_depend_only_on_the_seed() {
        let kinds = Mix::HeavyTailed.kinds().unwrap();
        let fields = |jobs: &[GeneratedJob<'_>]| -> Vec<_> {
            jobs.iter().map(|job| (job.seed, job.at, job.cost)).collect()
        };
        assert_eq!(fields(&kinds.jobs(100)), fields(&kinds.jobs(100)));
    }

    #[test]
    fn first_time_without_load_is_within_one_interval() {
        let kinds = Mix::Odd.kinds().unwrap();
        let mut dice = Dice::new(1);
        for job in kinds.jobs(1000) {
            let Schedule::Interval(interval) = &job.definition.schedule else { continue };
            for way in [Strategy::NowPlusInterval, Strategy::Jitter, Strategy::Hash] {
                let time = first_time_without_load(&job, way, &mut dice).unwrap();
                assert!(time > job.at && time.since(job.at) <= interval.every(), "{way:?}");
            }
        }
    }
}
