//! Simulates a month without rebalancing and checks that runs stay evenly spread over time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod downtime;

use std::collections::BTreeMap;

use evenkeel_core::balance::{
    BalanceSettings, Granularity, Horizon, JobToPlace, LoadProfile, LoadProfileKey, Loads, Measure,
    NodeTurn, Policy, first_time,
};
use evenkeel_core::schedule::{Cron, CronSchedule, Interval};
use evenkeel_core::{Definition, Schedule, Span, Timestamp};

/// Pseudo-random numbers that are the same whenever the test runs.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    fn definition(&mut self) -> Definition {
        const MINUTES: [u64; 12] = [1440, 1440, 1440, 1440, 720, 60, 60, 15, 20, 420, 2160, 10_080];
        match self.below(20) {
            0 => {
                let cron = Cron::parse("0 9 * * *").unwrap().resolved(0, true);
                Definition::noop(Schedule::Cron(CronSchedule { cron, max_duration: None }))
            }
            _ => {
                let every = Span::from_secs(60 * MINUTES[self.below(MINUTES.len())]);
                Definition::noop(Schedule::Interval(Interval::new(every, None).unwrap()))
            }
        }
    }

    /// Returns a random cost of a run, from one second to one hour.
    fn cost(&mut self) -> Span {
        let halves = self.below(12) + self.below(12);
        Span::from_millis(1000 << (halves / 2))
    }
}

struct Job {
    definition: Definition,
    seed: u64,
    cost: Span,
    /// `None` while the job is paused.
    profile: Option<LoadProfile>,
}

struct Month {
    settings: BalanceSettings,
    now: Timestamp,
    dice: Dice,
    jobs: Vec<Job>,
    /// Number of jobs and their total cost per load profile.
    counts: BTreeMap<LoadProfileKey, (LoadProfile, u64, Span)>,
    loads: Loads,
}

impl Month {
    fn begin(policy: Policy) -> Self {
        let settings = BalanceSettings { policy, ..BalanceSettings::default() };
        let now: Timestamp = "2026-03-02T00:00:00Z".parse().unwrap();
        let loads = Loads::new(Horizon::new(&settings, now));
        Self { settings, now, dice: Dice(6), jobs: Vec::new(), counts: BTreeMap::new(), loads }
    }

    /// Advances the time. At the start of every time slot, the load is computed anew from the
    /// numbers of jobs per load profile.
    fn advance(&mut self, by: Span) {
        self.now = self.now.saturating_add(by);
        let horizon = Horizon::new(&self.settings, self.now);
        if horizon == self.loads.horizon() {
            return;
        }
        self.loads = Loads::new(horizon);
        for (profile, jobs, cost) in self.counts.values() {
            self.loads.add(profile, *jobs, *cost);
        }
    }

    fn place(&mut self, mut job: Job) -> Job {
        let (definition, seed, cost) = (&job.definition, job.seed, job.cost);
        let wanted = JobToPlace { definition, seed, cost, after: self.now };
        let time = first_time(&self.settings, wanted, &self.loads, &self.loads, NodeTurn::ALONE);
        let profile = LoadProfile::of(definition, time.unwrap()).unwrap();
        self.loads.add(&profile, 1, job.cost);
        let key = LoadProfileKey::of(&profile.text());
        let (_, jobs, cost) = self.counts.entry(key).or_insert((profile.clone(), 0, Span::ZERO));
        (*jobs, *cost) = (*jobs + 1, cost.saturating_add(job.cost));
        job.profile = Some(profile);
        job
    }

    fn take_out(&mut self, mut job: Job) -> Job {
        if let Some(profile) = job.profile.take() {
            self.loads.remove(&profile, 1, job.cost);
            let count = self.counts.get_mut(&LoadProfileKey::of(&profile.text()));
            let (_, jobs, cost) = count.unwrap();
            (*jobs, *cost) = (*jobs - 1, cost.saturating_sub(job.cost));
        }
        job
    }

    fn add(&mut self) {
        let (definition, seed, cost) = (self.dice.definition(), self.dice.roll(), self.dice.cost());
        let job = self.place(Job { definition, seed, cost, profile: None });
        self.jobs.push(job);
    }

    /// Applies a random command to a random job.
    fn apply_random_command(&mut self) {
        let what = self.dice.below(10);
        if what < 3 {
            return self.add();
        }
        let which = self.dice.below(self.jobs.len());
        let job = self.jobs.swap_remove(which);
        let was_paused = job.profile.is_none();
        let mut job = self.take_out(job);
        match what {
            3..6 => return,
            6 | 7 if !was_paused => {}
            _ => {
                if what == 8 {
                    job.definition = self.dice.definition();
                }
                job = self.place(job);
            }
        }
        self.jobs.push(job);
    }

    fn score(&self) -> f64 {
        self.loads.spread(Measure::Runs, Granularity::Slot).score
    }
}

/// Returns the lowest evenness score of a month in which each of 5,000 jobs is changed about three
/// times.
fn lowest_score(policy: Policy) -> f64 {
    let mut month = Month::begin(policy);
    // Ten jobs are created in each of the first 500 minutes.
    for _ in 0..500 {
        month.advance(Span::from_secs(60));
        (0..10).for_each(|_| month.add());
    }
    let mut lowest = month.score();
    for _ in 0..30 * 24 {
        for _ in 0..4 {
            month.advance(Span::from_secs(900));
            (0..5).for_each(|_| month.apply_random_command());
        }
        lowest = lowest.min(month.score());
    }
    assert!((4000..6000).contains(&month.jobs.len()), "{} jobs", month.jobs.len());
    lowest
}

#[test]
fn load_stays_even_for_a_month_by_default() {
    let lowest = lowest_score(Policy::default());
    assert!(lowest > 0.9, "{lowest}");
}

#[test]
fn load_stays_even_for_a_month_by_next_runs() {
    let lowest = lowest_score(Policy::Next);
    assert!(lowest > 0.9, "{lowest}");
}
