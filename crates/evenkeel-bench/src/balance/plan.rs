//! Plans a rebalance of jobs whose start times were not balanced: the first run is one interval
//! after the job's creation.

use std::collections::HashMap;
use std::time::Duration;

use evenkeel_core::balance::{
    BalanceSettings, Granularity, Horizon, LoadProfile, LoadProfileKey, Loads, Measure, Placement,
    PlanBounds, plan,
};
use evenkeel_core::{JobNo, Schedule, Span, Timestamp};
use serde::Serialize;

use super::mixes::{GeneratedJob, Kinds, Mix};
use super::study::Figures;
use crate::machine::{cpu_seconds, peak_rss_mb};

/// Cost and result of planning a rebalance.
#[derive(Clone, Debug, Serialize)]
pub struct PlanFigures {
    pub mix: Mix,
    pub jobs: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Peak memory use of the whole process.
    pub peak_rss_mb: f64,
    pub moves: u64,
    /// Jobs that must not move.
    pub skipped: u64,
    /// Evenness of the number of runs per time slot, before and after the rebalance.
    pub runs: [Figures; 2],
    /// Evenness of the total run duration per time slot, before and after the rebalance.
    pub cost: [Figures; 2],
}

pub fn measure_plan(
    mix: Mix,
    count: u64,
    monotonic: &dyn Fn() -> Duration,
) -> anyhow::Result<PlanFigures> {
    let kinds = mix.kinds()?;
    let settings = BalanceSettings::default();
    let now = Kinds::end();
    let Sample { jobs, profiles, loads } = Sample::of(&kinds.jobs(count), &settings, now);
    let (began, cpu) = (monotonic(), cpu_seconds());
    let plan = plan(&settings, &jobs, &profiles, &loads, &loads, PlanBounds::default(), now);
    let (seconds, cpu_seconds) = ((monotonic() - began).as_secs_f64(), cpu_seconds() - cpu);
    let figures = |measure| {
        [&plan.loads_before, &plan.loads_after]
            .map(|loads| Figures::from(loads.spread(measure, Granularity::Slot)))
    };
    Ok(PlanFigures {
        mix,
        jobs: count,
        seconds,
        cpu_seconds,
        peak_rss_mb: peak_rss_mb(),
        moves: plan.moves.len() as u64,
        skipped: plan.skipped.len() as u64,
        runs: figures(Measure::Runs),
        cost: figures(Measure::Cost),
    })
}

/// Jobs in the form in which the store lists them for a rebalance, and the load of these jobs.
struct Sample {
    jobs: Vec<Placement>,
    profiles: HashMap<LoadProfileKey, LoadProfile>,
    loads: Loads,
}

impl Sample {
    fn of(generated: &[GeneratedJob<'_>], settings: &BalanceSettings, now: Timestamp) -> Self {
        let mut jobs = Vec::with_capacity(generated.len());
        let mut profiles = HashMap::new();
        let mut counts: HashMap<LoadProfileKey, (u64, Span)> = HashMap::new();
        for (number, job) in generated.iter().enumerate() {
            let Some((next_at, last_fired_at)) = times(job, now) else { continue };
            let Some(profile) = LoadProfile::of(job.definition, next_at) else { continue };
            let key = LoadProfileKey::of(&profile.text());
            profiles.entry(key).or_insert(profile);
            let count = counts.entry(key).or_default();
            *count = (count.0 + 1, count.1.saturating_add(job.cost));
            jobs.push(Placement {
                job: JobNo(number as i64 + 1),
                seed: job.seed,
                generation: 1,
                next_at,
                last_fired_at,
                placed_at: job.at,
                is_live: false,
                profile: Some(key),
                cost: job.cost,
            });
        }
        let mut loads = Loads::new(Horizon::new(settings, now));
        for (key, (jobs, cost)) in counts {
            loads.add(&profiles[&key], jobs, cost);
        }
        Self { jobs, profiles, loads }
    }
}

/// Returns the job's next run time after `now` and its last run time before `now`.
fn times(job: &GeneratedJob<'_>, now: Timestamp) -> Option<(Timestamp, Option<Timestamp>)> {
    let Schedule::Interval(interval) = &job.definition.schedule else {
        return Some((job.definition.timetable().first_after(now)?, None));
    };
    let every = interval.every();
    let passed = now.since(job.at).as_micros() / every.as_micros();
    let last = job.at.saturating_add(every.saturating_mul(passed));
    Some((last.saturating_add(every), (passed > 0).then_some(last)))
}
