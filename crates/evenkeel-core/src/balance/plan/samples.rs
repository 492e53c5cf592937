//! Sample jobs for tests.

use std::collections::HashMap;

use super::{Placement, Plan, PlanBounds, plan};
use crate::balance::hits::micros;
use crate::balance::{BalanceSettings, Horizon, LoadProfile, LoadProfileKey, Loads};
use crate::ids::JobNo;
use crate::job::Definition;
use crate::schedule::{Interval, Schedule};
use crate::time::{Span, Timestamp};

pub(super) const NOON: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);
pub(super) const HOUR: u64 = 3600;
pub(super) const DAY: u64 = 24 * HOUR;

/// A job whose start time was chosen long ago and that last ran one interval before `next_at`.
pub(super) fn placement(number: i64, every: u64, next_at: Timestamp) -> Placement {
    Placement {
        job: JobNo(number),
        seed: number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7,
        generation: 1,
        next_at,
        last_fired_at: Some(next_at.saturating_sub(Span::from_secs(every))),
        placed_at: NOON.saturating_sub(Span::from_secs(40 * DAY)),
        is_live: false,
        profile: None,
        cost: Span::from_secs(60),
    }
}

pub(super) fn interval(every: u64) -> Definition {
    Definition::noop(Schedule::Interval(Interval::new(Span::from_secs(every), None).unwrap()))
}

/// Sample jobs and their load.
pub(super) struct Sample {
    pub settings: BalanceSettings,
    pub jobs: Vec<Placement>,
    pub profiles: HashMap<LoadProfileKey, LoadProfile>,
    pub definitions: Vec<Definition>,
    pub loads: Loads,
}

impl Sample {
    pub fn new() -> Self {
        Self::with(BalanceSettings::default())
    }

    pub fn with(settings: BalanceSettings) -> Self {
        Self {
            settings,
            jobs: Vec::new(),
            profiles: HashMap::new(),
            definitions: Vec::new(),
            loads: Loads::new(Horizon::new(&settings, NOON)),
        }
    }

    /// Adds a job that runs after [`NOON`], `phase` seconds into its interval counted from 1970.
    pub fn add(&mut self, every: u64, phase: u64, cost: u64) {
        self.add_like(interval(every), phase, cost);
    }

    pub fn add_like(&mut self, definition: Definition, phase: u64, cost: u64) {
        let Schedule::Interval(every) = &definition.schedule else { panic!("no interval") };
        let every = every.every();
        let soonest = NOON.saturating_add(self.settings.protection).as_micros() + 1;
        let phase = micros(Span::from_secs(phase));
        let next_at = soonest + (phase - soonest).rem_euclid(micros(every));
        self.add_at(definition, Timestamp::from_micros(next_at), cost);
    }

    pub fn add_at(&mut self, definition: Definition, next_at: Timestamp, cost: u64) {
        let profile = LoadProfile::of(&definition, next_at).unwrap();
        let key = LoadProfileKey::of(&profile.text());
        let cost = Span::from_secs(cost);
        self.loads.add(&profile, 1, cost);
        let every = match &definition.schedule {
            Schedule::Interval(every) => every.every().as_micros() / 1_000_000,
            _ => DAY,
        };
        let number = self.jobs.len() as i64 + 1;
        let placement = placement(number, every, next_at);
        self.jobs.push(Placement { profile: Some(key), cost, ..placement });
        self.profiles.insert(key, profile);
        self.definitions.push(definition);
    }

    pub fn plan(&self, bounds: PlanBounds) -> Plan {
        plan(&self.settings, &self.jobs, &self.profiles, &self.loads, &self.loads, bounds, NOON)
    }

    /// Returns the load after the moves of the plan, computed anew from all jobs.
    pub fn recount(&self, plan: &Plan) -> Loads {
        let mut next_at: Vec<Timestamp> = self.jobs.iter().map(|job| job.next_at).collect();
        for it in &plan.moves {
            next_at[it.job.0 as usize - 1] = it.new_at;
        }
        let mut loads = Loads::new(self.loads.horizon());
        for (number, job) in self.jobs.iter().enumerate() {
            let profile = LoadProfile::of(&self.definitions[number], next_at[number]).unwrap();
            loads.add(&profile, 1, job.cost);
        }
        loads
    }
}
