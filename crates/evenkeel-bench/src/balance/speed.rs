//! Measures how long the balancer takes to choose the start time of one job.

use std::hint::black_box;
use std::time::Duration;

use evenkeel_core::balance::{BalanceSettings, LoadProfile, Loads, NodeTurn, Policy, first_time};
use evenkeel_core::{Definition, Span};
use serde::Serialize;

use super::mixes::{GeneratedJob, Kinds, Mix};
use super::study::{Strategy, placed, to_place};
use crate::workload::noop_every;

#[derive(Clone, Debug, Serialize)]
pub struct PlacementFigures {
    pub policy: Policy,
    /// Number of jobs that already have a start time.
    pub among: u64,
    /// Interval of the job whose start time is chosen.
    pub every: Span,
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// Median time to add the job to the load counts.
    pub count_ns: u64,
}

const PLACEMENTS: u64 = 2000;

const HOUR: u64 = 3600;

/// Measures how long choosing a start time takes for short and long intervals, with `among` other
/// jobs.
pub fn measure(
    among: u64,
    monotonic: &dyn Fn() -> Duration,
) -> anyhow::Result<Vec<PlacementFigures>> {
    let kinds = Mix::Odd.kinds()?;
    let jobs = kinds.jobs(among);
    let mut figures = Vec::new();
    for (policy, way) in [(Policy::Next, Strategy::Next), (Policy::Projected, Strategy::Projected)]
    {
        let mut plan = placed(&jobs, way);
        let loads = plan.loads_at(Kinds::end()).clone();
        for hours in [1, 24, 7 * 24, 30 * 24] {
            let every = Span::from_secs(hours * HOUR);
            let times = place(policy, &noop_every(every)?, loads.clone(), monotonic);
            let [p50_ns, p99_ns, count_ns] = times;
            figures.push(PlacementFigures { policy, among, every, p50_ns, p99_ns, count_ns });
        }
    }
    Ok(figures)
}

/// Measures how long choosing a start time for a job takes (p50 and p99), and how long adding the
/// job to the load counts takes (p50), in nanoseconds.
fn place(
    policy: Policy,
    definition: &Definition,
    mut loads: Loads,
    monotonic: &dyn Fn() -> Duration,
) -> [u64; 3] {
    let settings = BalanceSettings { policy, ..BalanceSettings::default() };
    let empty = empty_nanos(monotonic);
    let mut nanos = Vec::new();
    let mut counting = Vec::new();
    for seed in 0..PLACEMENTS {
        let at = Kinds::end().saturating_add(Span::from_secs(seed % 900));
        let job = GeneratedJob { definition, cost: Span::from_secs(30), seed: seed * 7919, at };
        let began = monotonic();
        let time =
            first_time(&settings, black_box(to_place(&job)), &loads, &loads, NodeTurn::ALONE);
        let placed = monotonic();
        nanos.push(nanos_of(placed - began).saturating_sub(empty));
        if let Some(profile) = time.and_then(|time| LoadProfile::of(definition, time)) {
            let began = monotonic();
            loads.add(&profile, 1, job.cost);
            counting.push(nanos_of(monotonic() - began).saturating_sub(empty));
        }
    }
    [quantile(&mut nanos, 50), quantile(&mut nanos, 99), quantile(&mut counting, 50)]
}

/// Returns the median time that reading the clock takes.
fn empty_nanos(monotonic: &dyn Fn() -> Duration) -> u64 {
    let mut nanos: Vec<u64> = (0..1000)
        .map(|_| {
            let began = monotonic();
            nanos_of(monotonic() - began)
        })
        .collect();
    quantile(&mut nanos, 50)
}

fn quantile(nanos: &mut [u64], percent: usize) -> u64 {
    nanos.sort_unstable();
    nanos.get(nanos.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
