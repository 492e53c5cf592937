//! Properties of plans.

use proptest::prelude::*;

use super::samples::{DAY, HOUR, NOON, Sample, interval, placement};
use super::*;
use crate::balance::{Recurrence, decode_moves, encode_moves};
use crate::blackout::LocalHours;
use crate::job::{Bounds, Definition};
use crate::schedule::{Cron, CronSchedule, Schedule};

fn all(sample: &Sample) -> Plan {
    sample.plan(PlanBounds::default())
}

/// Checks that the fields of a rebalance plan are consistent with each other.
fn check(sample: &Sample, plan: &Plan) {
    let recount = sample.recount(plan);
    for measure in [Measure::Runs, Measure::Next, Measure::Cost] {
        let (after, anew) = (plan.loads_after.by_slot(measure), recount.by_slot(measure));
        // Costs that are split among time slots of less than 15 minutes have rounding errors.
        let is_same = after.iter().zip(&anew).all(|(one, two)| (one - two).abs() < 1e-3);
        assert!(is_same, "{measure:?}");
    }
    let anew = recount.spread(Measure::Runs, Granularity::Slot);
    assert!((plan.after.score - anew.score).abs() < 1e-9 && plan.after.peak_at == anew.peak_at);
    assert_eq!(plan.before, sample.loads.spread(Measure::Runs, Granularity::Slot));
    assert!(plan.after.score >= plan.before.score, "{} {}", plan.before.score, plan.after.score);
    let soonest = NOON.saturating_add(sample.settings.protection);
    let mut seen = std::collections::BTreeSet::new();
    for it in &plan.moves {
        let number = it.job.0 as usize - 1;
        let (job, definition) = (&sample.jobs[number], &sample.definitions[number]);
        assert!(seen.insert(it.job), "{} is moved twice", it.job);
        assert!(!plan.skipped.iter().any(|(skipped, _)| *skipped == it.job));
        assert_eq!((it.generation, it.old_at), (job.generation, job.next_at));
        assert!(it.new_at > soonest && it.new_at != it.old_at);
        let profile = LoadProfile::of(definition, it.new_at).unwrap();
        assert_ne!(Some(&profile), LoadProfile::of(definition, it.old_at).as_ref());
        assert_eq!(plan.profiles.get(&it.profile), Some(&profile.text()));
        let Recurrence::Every { every, .. } = profile.recurrence else {
            panic!("{profile:?} was moved")
        };
        let gap = it.new_at.since(job.last_fired_at.unwrap());
        assert!(gap.saturating_mul(2) >= every && gap < every.saturating_mul(2));
    }
    assert_eq!(decode_moves(&encode_moves(&plan.moves)).as_ref(), Ok(&plan.moves));
}

fn score(loads: &Loads, measure: Measure) -> f64 {
    loads.spread(measure, Granularity::Slot).score
}

#[test]
fn thousand_daily_jobs_in_one_slot_are_spread_over_the_day() {
    let mut sample = Sample::new();
    (0..1000).for_each(|n| sample.add(DAY, 3 * HOUR + n % 900, 60));
    let plan = all(&sample);
    check(&sample, &plan);
    assert!(plan.before.score < 0.1 && plan.after.score > 0.999, "{:?}", plan.after);
    assert!((plan.after.peak - 11.0).abs() < 0.5, "{:?}", plan.after);
    // The jobs for which the original time slot has enough room are not moved.
    assert!(plan.moves.len() < 991, "{}", plan.moves.len());
}

#[test]
fn hourly_jobs_in_one_quarter_are_spread_over_all_four() {
    let mut sample = Sample::new();
    (0..400).for_each(|n| sample.add(HOUR, n % 900, 60));
    let plan = all(&sample);
    check(&sample, &plan);
    assert!(plan.after.score > 0.999, "{:?}", plan.after);
    assert_eq!(plan.moves.len(), 300);
}

#[test]
fn a_crontab_that_starts_everything_on_the_hour_is_repaired() {
    let mut sample = Sample::new();
    for n in 0..600 {
        sample.add(DAY, n % 6 * HOUR, 30 + n % 7);
        sample.add(12 * HOUR, n % 3 * HOUR, 60);
        sample.add(HOUR, 0, 10);
        sample.add(7 * DAY, n % 4 * HOUR, 600);
        sample.add(1800, 0, 5);
    }
    let plan = all(&sample);
    check(&sample, &plan);
    let cost = [&plan.loads_before, &plan.loads_after].map(|it| score(it, Measure::Cost));
    assert!(plan.before.score < 0.6 && plan.after.score > 0.995, "{:?}", plan.after);
    assert!(cost[1] > 0.9, "{cost:?}");
}

#[test]
fn plan_evens_out_costs() {
    let mut sample = Sample::new();
    // All time slots have equally many runs, but all expensive jobs run at night.
    for slot in 0..96 {
        for n in 0..20 {
            sample.add(DAY, slot * 900 + n, if slot < 24 { 400 } else { 40 } + n);
        }
    }
    let plan = all(&sample);
    check(&sample, &plan);
    let cost = [&plan.loads_before, &plan.loads_after].map(|it| score(it, Measure::Cost));
    assert!(cost[0] < 0.7 && cost[1] > 0.97, "{cost:?}");
    assert!((plan.after.score - 1.0).abs() < 1e-9);
}

#[test]
fn even_load_is_left_alone() {
    let mut sample = Sample::new();
    for slot in 0..96 {
        (0..10).for_each(|n| sample.add(DAY, slot * 900 + n, 60));
        sample.add(HOUR, slot % 4 * 900, 60);
        sample.add(7 * DAY, slot * 7 * 900, 60);
    }
    assert_eq!(all(&sample).moves, []);
    assert_eq!(all(&Sample::new()).moves, []);
}

#[test]
fn a_single_job_is_left_alone() {
    for every in [900, 1200, HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY] {
        let mut sample = Sample::new();
        sample.add(every, 100, 60);
        assert_eq!(all(&sample).moves, [], "every {every} s");
    }
}

#[test]
fn plan_has_at_most_max_moves() {
    let mut sample = Sample::new();
    (0..500).for_each(|n| sample.add(DAY, n, 60));
    (0..50).for_each(|n| sample.add(HOUR, n, 60));
    let whole = all(&sample);
    let mut last = whole.before.score;
    for most in [0, 1, 10, 100, 400] {
        let plan = sample.plan(PlanBounds { max_moves: Some(most), target_score: None });
        check(&sample, &plan);
        assert!(plan.moves.len() as u64 <= most && plan.after.score >= last);
        assert!(most == 0 || plan.after.score > whole.before.score, "{most}");
        last = plan.after.score;
    }
}

#[test]
fn plan_ends_at_the_target_score() {
    let mut sample = Sample::new();
    (0..500).for_each(|n| sample.add(DAY, n, 60));
    (0..50).for_each(|n| sample.add(HOUR, n, 60));
    let whole = all(&sample);
    let mut moves = 0;
    for target in [0.5, 0.7, 0.9, 0.95] {
        let plan = sample.plan(PlanBounds { max_moves: None, target_score: Some(target) });
        check(&sample, &plan);
        assert!(plan.after.score >= target && plan.moves.len() > moves);
        assert!(plan.moves.len() < whole.moves.len());
        moves = plan.moves.len();
        let fewer = PlanBounds { max_moves: Some(moves as u64 - 1), target_score: Some(target) };
        assert!(sample.plan(fewer).after.score < target);
    }
    let reached = sample.plan(PlanBounds { max_moves: None, target_score: Some(0.01) });
    assert_eq!(reached.moves, []);
    let beyond = sample.plan(PlanBounds { max_moves: None, target_score: Some(1.5) });
    assert!((beyond.after.score - whole.after.score).abs() < 1e-3, "{:?}", beyond.after);
}

#[test]
fn jobs_keep_to_the_hours_they_prefer() {
    let night = LocalHours { start: "22:00".parse().unwrap(), end: "06:00".parse().unwrap() };
    let blackouts = LocalHours { start: "02:00".parse().unwrap(), end: "03:00".parse().unwrap() };
    let at_night = Definition {
        prefer_window: Some(night),
        blackout_periods: vec![blackouts],
        ..interval(DAY)
    };
    let mut sample = Sample::new();
    (0..280).for_each(|n| sample.add_like(at_night.clone(), 23 * HOUR + n, 60));
    (0..500).for_each(|n| sample.add(DAY, 23 * HOUR + n, 60));
    let plan = all(&sample);
    check(&sample, &plan);
    assert!(plan.after.score > 0.99, "{:?}", plan.after);
    for it in plan.moves.iter().filter(|it| it.job.0 <= 280) {
        let of_day = it.new_at.as_micros() / 1_000_000 % 86_400;
        let hour = of_day / 3600;
        assert!(!(6..22).contains(&hour) && hour != 2, "{}", it.new_at);
    }
}

#[test]
fn fixed_jobs_are_skipped_with_a_reason() {
    let mut sample = Sample::new();
    (0..100).for_each(|n| sample.add(DAY, 3 * HOUR + n, 60));
    sample.jobs[0].is_live = true;
    sample.jobs[1].next_at = NOON.saturating_add(Span::from_secs(1800));
    sample.jobs[2].placed_at = NOON;
    let cron = Cron::parse("0 3 * * *").unwrap().resolved(7, true);
    let cron = Schedule::Cron(CronSchedule { cron, max_duration: None });
    let later = NOON.saturating_add(Span::from_secs(15 * HOUR));
    sample.add_at(Definition::noop(cron), later, 60);
    sample.add(60, 0, 1);
    let ending = Bounds { end_at: Some(later), ..Bounds::default() };
    sample.add_at(Definition { bounds: ending, ..interval(DAY) }, later, 60);
    sample.jobs.push(Placement { profile: None, ..placement(104, DAY, later) });
    let plan = all(&sample);
    let numbered = |number, reason| (JobNo(number), reason);
    let expected = [
        numbered(1, SkipReason::JobRunning),
        numbered(2, SkipReason::ProtectionWindow),
        numbered(3, SkipReason::PlacementCooldown),
        numbered(101, SkipReason::NotMovable),
        numbered(102, SkipReason::NotMovable),
        numbered(103, SkipReason::NotMovable),
        numbered(104, SkipReason::NotMovable),
    ];
    assert_eq!(plan.skipped, expected);
    let reasons: Vec<(SkipReason, u64)> = plan.skipped_by_reason().into_iter().collect();
    let expected = [
        (SkipReason::JobRunning, 1),
        (SkipReason::ProtectionWindow, 1),
        (SkipReason::PlacementCooldown, 1),
        (SkipReason::NotMovable, 4),
    ];
    assert_eq!(reasons, expected);
    assert!(plan.moves.iter().all(|it| (4..=100).contains(&it.job.0)));
}

#[test]
fn moved_job_keeps_its_own_second_of_the_slot() {
    let mut sample = Sample::new();
    (0..2000).for_each(|_| sample.add(DAY, 3 * HOUR, 60));
    let plan = all(&sample);
    let mut seconds = std::collections::BTreeSet::new();
    for it in &plan.moves {
        let job = &sample.jobs[it.job.0 as usize - 1];
        let second = it.new_at.as_micros() / 1_000_000 % 900;
        assert_eq!(second.cast_unsigned(), job.seed % 900);
        seconds.insert(second);
    }
    assert!(seconds.len() > 500, "{}", seconds.len());
}

#[test]
fn rare_jobs_are_not_moved_beyond_the_horizon() {
    let mut sample = Sample::new();
    for n in 0..200 {
        sample.add(30 * DAY, (NOON.as_micros() / 1_000_000) as u64 + DAY + n, 60);
        sample.add(5 * DAY, (NOON.as_micros() / 1_000_000) as u64 + DAY + n, 60);
    }
    let plan = all(&sample);
    check(&sample, &plan);
    assert!(plan.moves.len() > 300);
    let end = NOON.saturating_add(Span::from_secs(7 * DAY));
    assert!(plan.moves.iter().all(|it| it.new_at < end));
}

#[test]
fn plan_may_cover_a_part_of_the_jobs() {
    let mut sample = Sample::new();
    (0..300).for_each(|n| sample.add(DAY, n, 60));
    let some: Vec<Placement> = sample.jobs.iter().step_by(3).copied().collect();
    let (own, now) = (&sample.loads, NOON);
    let plan =
        plan(&sample.settings, &some, &sample.profiles, own, own, PlanBounds::default(), now);
    check(&sample, &plan);
    assert!(plan.moves.len() > 90 && plan.moves.iter().all(|it| it.job.0 % 3 == 1));
}

#[test]
fn load_of_all_tenants_decides_between_equal_slots() {
    let mut sample = Sample::new();
    sample.add(HOUR, 0, 60);
    sample.add(HOUR, 1, 60);
    let mut all = sample.loads.clone();
    for quarter in [1, 3] {
        let time = Timestamp::from_micros(NOON.as_micros() + quarter * 900_000_000);
        all.add(&LoadProfile::of(&interval(HOUR), time).unwrap(), 5, Span::from_secs(300));
    }
    let (own, bounds) = (&sample.loads, PlanBounds::default());
    let plan = plan(&sample.settings, &sample.jobs, &sample.profiles, own, &all, bounds, NOON);
    assert_eq!(plan.moves.len(), 1);
    assert_eq!(plan.moves[0].new_at.as_micros() / 1_000_000 % 3600 / 900, 2);
}

#[test]
fn slots_may_be_as_short_as_a_second() {
    let settings = BalanceSettings {
        slot: Span::from_secs(1),
        protection: Span::ZERO,
        cooldown: Span::ZERO,
        ..BalanceSettings::default()
    };
    let mut sample = Sample::with(settings);
    (0..500).for_each(|n| sample.add(5 + n % 3, 0, 1));
    let plan = all(&sample);
    check(&sample, &plan);
    assert!(plan.after.score > 0.99, "{:?}", plan.after);
}

prop_compose! {
    fn any_job()(
        every in prop::sample::select(vec![
            900, 1000, 1200, 1800, 2700, HOUR, 5000, 2 * HOUR, 6 * HOUR, DAY, 25 * HOUR, 2 * DAY,
            7 * DAY, 9 * DAY, 30 * DAY, 60,
        ]),
        phase in prop_oneof![0..40 * DAY, Just(0), Just(5 * HOUR), 0..8 * HOUR],
        cost in prop_oneof![Just(60), 1_u64..100, 1_u64..5000],
        copies in 1_usize..20,
    ) -> (u64, u64, u64, usize) {
        (every, phase, cost, copies)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn plan_is_consistent_and_never_worse_than_none(
        jobs in prop::collection::vec(any_job(), 0..40),
        slot in prop::sample::select(vec![900_u64, 900, 900, 300, 1200, 3600]),
        max_moves in prop::option::of(0_u64..50),
    ) {
        let settings = BalanceSettings { slot: Span::from_secs(slot), ..Default::default() };
        let mut sample = Sample::with(settings);
        for (every, phase, cost, copies) in jobs {
            (0..copies).for_each(|n| sample.add(every, phase + n as u64, cost));
        }
        let plan = sample.plan(PlanBounds { max_moves, target_score: None });
        check(&sample, &plan);
        prop_assert!(max_moves.is_none_or(|most| plan.moves.len() as u64 <= most));
        prop_assert_eq!(&sample.plan(PlanBounds { max_moves, target_score: None }), &plan);
    }
}

#[test]
fn jobs_beyond_the_horizon_are_skipped() {
    let mut sample = Sample::new();
    (0..50).for_each(|n| sample.add(DAY, 3 * HOUR + n, 60));
    sample.add_at(interval(30 * DAY), NOON.saturating_add(Span::from_secs(20 * DAY)), 60);
    let plan = all(&sample);
    check(&sample, &plan);
    assert_eq!(plan.skipped, [(JobNo(51), SkipReason::NotMovable)]);
}
