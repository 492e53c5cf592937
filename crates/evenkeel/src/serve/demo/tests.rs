use std::collections::{BTreeSet, HashMap};

use evenkeel_commands::{JobSpec, read_job};
use evenkeel_core::balance::{
    BalanceSettings, Granularity, Horizon, LoadProfile, LoadProfileKey, Loads, Measure, Placement,
    PlanBounds, plan,
};
use evenkeel_core::{JobId, JobNo, Span, TenantNo, Timestamp};
use evenkeel_executors::{NoopExecutor, Registry};

use super::*;
use crate::serve::demo::sample::{DAY, hours};

/// A Tuesday at midnight.
const MIDNIGHT: Timestamp = Timestamp::from_micros(1_764_633_600_000_000);

fn read(samples: &[Sample]) -> Vec<JobSpec> {
    let executors = Checks(Arc::new(Registry::new().with(Arc::new(NoopExecutor))));
    let read = |sample: &Sample| read_job(&sample.document, TenantNo(1), &executors).unwrap();
    samples.iter().map(read).collect()
}

#[test]
fn there_are_500_valid_jobs_with_names_and_the_label_that_removes_them() {
    let samples = samples(MIDNIGHT);
    let names: BTreeSet<Option<String>> =
        read(&samples).into_iter().map(|spec| spec.about.name).collect();
    assert_eq!((samples.len(), names.len()), (500, 500));
    for sample in &samples {
        assert_eq!(sample.document["metadata"]["demo"], true, "{}", sample.document);
        assert_eq!(sample.document["executor_type"], "noop", "{}", sample.document);
    }
}

/// The protection window keeps a rebalance from moving the jobs that are due soon, so the number of
/// moves depends on the time of day.
#[test]
fn load_is_uneven_and_a_rebalance_moves_200_jobs_at_any_time_of_the_day() {
    let settings = BalanceSettings::default();
    for quarter in 0..96 {
        let now = MIDNIGHT.saturating_add(Span::from_secs(900 * quarter + 60));
        let horizon = Horizon::new(&settings, now);
        let (mut loads, mut profiles, mut placements) =
            (Loads::new(horizon), HashMap::new(), vec![]);
        let samples = samples(now);
        for (number, (sample, spec)) in samples.iter().zip(read(&samples)).enumerate() {
            let id = JobId::new(now, [number as u8; 10]);
            let schedule = spec.definition.schedule.resolved(id, now, spec.exact);
            let definition = evenkeel_core::Definition { schedule, ..spec.definition };
            let Some(next_at) = sample.phase.first_after(&definition, now, now) else { continue };
            let profile = LoadProfile::of(&definition, next_at);
            let key = profile.as_ref().map(|profile| LoadProfileKey::of(&profile.text()));
            placements.push(Placement {
                job: JobNo(number as i64 + 1),
                seed: id.seed(),
                generation: 1,
                next_at,
                last_fired_at: None,
                placed_at: now.saturating_sub(sample.age),
                is_live: false,
                profile: key,
                cost: Span::from_secs(1),
            });
            if let (Some(profile), Some(key)) = (profile, key) {
                loads.add(&profile, 1, Span::from_secs(1));
                profiles.insert(key, profile);
            }
        }
        let score = loads.spread(Measure::Runs, Granularity::Slot).score;
        let bounds = PlanBounds::default();
        let plan = plan(&settings, &placements, &profiles, &loads, &loads, bounds, now);
        assert!(score < 0.65, "{score} at quarter {quarter}");
        assert!(plan.moves.len() >= 210, "{} moves at quarter {quarter}", plan.moves.len());
        assert!(plan.after.score > score + 0.1, "{} at quarter {quarter}", plan.after.score);
    }
}

#[test]
fn first_run_time_keeps_the_phase() {
    let samples = samples(MIDNIGHT);
    let specs = read(&samples);
    let first = |name: &str, after: Timestamp| {
        let found = samples.iter().zip(&specs);
        let mut found = found.filter(|(_, spec)| spec.about.name.as_deref() == Some(name));
        let (sample, spec) = found.next().unwrap();
        sample.phase.first_after(&spec.definition, after, MIDNIGHT).unwrap()
    };
    let at = |secs: u64| MIDNIGHT.saturating_add(Span::from_secs(secs));
    assert_eq!(first("report-sales-athens", MIDNIGHT), at(6 * 3600));
    assert_eq!(first("report-sales-athens", at(6 * 3600)), at(30 * 3600));
    assert_eq!(first("rebuild-product-search", MIDNIGHT), at(1));
    let three_hours_ago = MIDNIGHT.saturating_sub(hours(3));
    let day_before = MIDNIGHT.saturating_sub(Span::from_secs(DAY));
    assert_eq!(first("report-cash-flow", day_before), three_hours_ago);
}
