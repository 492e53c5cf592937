use proptest::prelude::*;

use super::*;
use crate::balance::test_loads::{NOON, daily, every, loads_of, nine};
use crate::balance::{Hours, LoadProfile};
use crate::time::Span;

const MINUTE: Span = Span::from_secs(60);

fn score(loads: &Loads) -> f64 {
    loads.spread(Measure::Runs, Granularity::Slot).score
}

#[test]
fn empty_load_is_even() {
    let loads = loads_of([]);
    for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
        for grain in [Granularity::Slot, Granularity::Hour] {
            let spread = loads.spread(measure, grain);
            assert_eq!((spread.score, spread.peak, spread.mean), (1.0, 0.0, 0.0));
        }
    }
}

#[test]
fn even_spread_scores_one_for_any_number_of_jobs() {
    for jobs in [1, 40_000] {
        let loads = loads_of((0..96).map(|slot| (daily(slot), jobs, MINUTE.saturating_mul(jobs))));
        for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
            for grain in [Granularity::Slot, Granularity::Hour] {
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
        let spread = loads.spread(measure, Granularity::Slot);
        assert!((spread.score - 1.0 / 3.0).abs() < 1e-9, "{measure:?}: {spread:?}");
    }
    let apart = loads_of((0..3).map(|slot| (daily(slot * 30), 1, MINUTE)));
    assert_eq!(score(&apart), 1.0);
}

#[test]
fn millions_of_jobs_in_one_slot_score_near_zero() {
    let one = loads_of([(daily(7), 3_000_000, MINUTE)]);
    assert!((score(&one) - 1.0 / 96.0).abs() < 1e-6);
    let two = loads_of([(daily(7), 1_500_000, MINUTE), (daily(50), 1_500_000, MINUTE)]);
    assert!((score(&two) - 2.0 / 96.0).abs() < 1e-6);
}

#[test]
fn immovable_jobs_do_not_lower_the_score() {
    let mut loads = loads_of([(nine(), 50, MINUTE.saturating_mul(50))]);
    assert_eq!(score(&loads), 1.0);
    // Movable jobs run in all time slots except the one with the immovable jobs.
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
    assert_eq!(even.spread(Measure::Next, Granularity::Slot).score, 1.0);
    assert_eq!(even.spread(Measure::Next, Granularity::Slot).least_peak, 24.0);
    assert_eq!(score(&even), 1.0);
    let one = loads_of([(hourly(1), 96, MINUTE)]);
    assert_eq!(one.spread(Measure::Next, Granularity::Slot).score, 0.25);
    assert_eq!(score(&one), 0.25);
}

#[test]
fn heaviest_job_bounds_the_least_peak() {
    let hour = Span::from_secs(3600);
    let mut loads = loads_of([(daily(5), 1, hour)]);
    (0..96).filter(|slot| *slot != 5).for_each(|slot| loads.add(&daily(slot), 1, MINUTE));
    let spread = loads.spread(Measure::Cost, Granularity::Slot);
    assert_eq!((spread.score, spread.peak, spread.least_peak), (1.0, 3600.0, 3600.0));
    assert_eq!(spread.peak_at, 48 + 5);
    // With a second expensive job in the same time slot, the load is no longer even.
    loads.add(&daily(5), 1, Span::from_secs(1800));
    assert!(loads.spread(Measure::Cost, Granularity::Slot).score < 0.9);
}

#[test]
fn jobs_that_prefer_some_hours_are_even_within_them() {
    let night = Hours {
        zone: crate::Zone::utc(),
        blackouts: Vec::new(),
        preferred: Some(crate::blackout::LocalHours {
            start: "22:00".parse().unwrap(),
            end: "02:00".parse().unwrap(),
        }),
    };
    let nightly = |slot| LoadProfile { hours: Some(night.clone()), ..daily(slot) };
    let slots = (88..96).chain(0..8);
    let mut loads = loads_of(slots.map(|slot| (nightly(slot), 3, MINUTE)));
    let spread = loads.spread(Measure::Runs, Granularity::Slot);
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
    assert_eq!(loads.spread(Measure::Runs, Granularity::Hour).peak_at, 9);
    assert_eq!(loads.horizon().start, NOON);
    assert_eq!(loads.spread(Measure::Runs, Granularity::Slot).peak_at, 21 * 4);
}
fn some() -> impl Strategy<Value = Vec<(LoadProfile, u64, Span)>> {
    let secs = prop::sample::select(vec![60, 900, 1200, 3600, 25_200, 86_400, 604_800]);
    let movable = (secs, 0_i64..1_000_000).prop_map(|(secs, offset)| every(secs, offset));
    let profile = prop_oneof![9 => movable, 1 => Just(nine())];
    let one = (profile, 1_u64..60, 1_u64..9000)
        .prop_map(|(profile, jobs, secs)| (profile, jobs, Span::from_secs(secs)));
    prop::collection::vec(one, 1..40)
}

proptest! {
    #[test]
    fn score_is_a_share_and_no_peak_is_below_the_least(all in some()) {
        let loads = loads_of(all);
        for measure in [Measure::Next, Measure::Runs, Measure::Cost] {
            for grain in [Granularity::Slot, Granularity::Hour] {
                let Spread { score, peak, mean, least_peak, .. } = loads.spread(measure, grain);
                prop_assert!((0.0..=1.0).contains(&score));
                prop_assert!(mean <= peak + 1e-9 && least_peak <= peak + 1e-9);
                prop_assert!(mean <= least_peak + 1e-9, "{mean} {least_peak}");
            }
        }
    }

    #[test]
    fn score_does_not_depend_on_the_amount_of_load(all in some(), times in 2_u64..1000) {
        let more = |times: u64| {
            loads_of(all.iter().map(|(profile, jobs, cost)| {
                (profile.clone(), jobs * times, cost.saturating_mul(times))
            }))
        };
        let score = |times: u64, measure| more(times).spread(measure, Granularity::Slot).score;
        // A job cannot be split, so with few jobs the score tolerates a difference of one job per
        // time slot.
        let (few, many) = (score(1000, Measure::Runs), score(1000 * times, Measure::Runs));
        prop_assert!((few - many).abs() < 0.01, "{few} {many}");
        let runs = score(1, Measure::Runs);
        prop_assert!(runs >= many - 0.01, "{runs} {many}");
        let heavier = loads_of(all.iter().map(|(profile, jobs, cost)| {
            (profile.clone(), *jobs, cost.saturating_mul(times))
        }));
        let heavier = heavier.spread(Measure::Cost, Granularity::Slot).score;
        prop_assert!((heavier - score(1, Measure::Cost)).abs() < 1e-3);
    }
}
