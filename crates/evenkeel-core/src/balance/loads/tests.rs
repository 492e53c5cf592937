use proptest::prelude::*;

use super::*;
use crate::balance::test_loads::{NOON, daily, every, loads_of, loads_with_slot, nine};
use crate::schedule::Periodic;

const MINUTE: Span = Span::from_secs(60);

fn total(loads: &Loads, measure: Measure) -> f64 {
    loads.by_slot(measure).iter().sum()
}

#[test]
fn slot_holds_its_quarter_of_an_hour() {
    let now = NOON.saturating_add(Span::from_secs(899));
    let horizon = Horizon::new(&BalanceSettings::default(), now);
    assert_eq!((horizon.start, horizon.slots, horizon.day()), (NOON, 672, 96));
    let later = NOON.saturating_add(Span::from_secs(900));
    assert_eq!(Horizon::new(&BalanceSettings::default(), later).start, later);
}

#[test]
fn short_slots_make_a_short_horizon_of_at_least_a_day() {
    for (slot, slots, day) in [(120, 4096, 720), (30, 4096, 2880), (10, 8640, 8640)] {
        let slot = Span::from_secs(slot);
        let horizon = Horizon::new(&BalanceSettings { slot, ..BalanceSettings::default() }, NOON);
        assert_eq!((horizon.slots, horizon.day()), (slots, day), "{slot}");
    }
}

#[test]
fn slots_of_a_second_show_the_same_day_as_others() {
    // Three jobs: one runs hourly, one every ten minutes, and one daily at nine by the local clock.
    let drawn = |slot| {
        let mut loads = loads_with_slot(Span::from_secs(slot));
        loads.add(&every(3600, 1800), 4, MINUTE);
        loads.add(&every(600, 60), 3, MINUTE);
        loads.add(&nine(), 2, MINUTE);
        assert_eq!(loads.horizon().day() as u64 * slot, 86_400);
        loads.by_hour(Measure::Runs)
    };
    let (usual, fine) = (drawn(900), drawn(1));
    for (hour, (usual, fine)) in usual.iter().zip(fine).enumerate() {
        assert!((usual - fine).abs() < 1e-6, "{hour}: {usual} and {fine}");
    }
}

#[test]
fn job_counts_in_every_slot_of_its_times() {
    let loads = loads_of([(every(3600, 1800), 2, MINUTE)]);
    let runs = loads.by_slot(Measure::Runs);
    let hit: Vec<usize> = (0..672).filter(|slot| runs[*slot] > 0.0).collect();
    assert_eq!(hit, (0..168).map(|hour| hour * 4 + 2).collect::<Vec<_>>());
    assert_eq!(runs[2], 2.0);
    assert_eq!(loads.by_slot(Measure::Cost)[6], 60.0);
    assert_eq!(loads.by_slot(Measure::Next)[2], 2.0);
    assert_eq!(total(&loads, Measure::Next), 2.0);
    assert_eq!(loads.jobs(), 2);
}

#[test]
fn odd_intervals_hit_the_slots_of_their_times() {
    for secs in [1200, 1500, 25_200, 129_600, 6000, 4200, 604_800, 2_592_000] {
        for offset in [0, 17, 899, 1000, 3599] {
            let loads = loads_of([(every(secs, offset), 1, MINUTE)]);
            let mut expected = vec![0.0; 672];
            let first = (offset - NOON.as_micros() / 1_000_000).rem_euclid(secs);
            let times = (0..).map(|n| first + n * secs).take_while(|secs| *secs < 604_800);
            times.for_each(|secs| expected[(secs / 900) as usize] += 1.0);
            assert_eq!(loads.by_slot(Measure::Runs), expected, "every {secs} at {offset}");
        }
    }
}

#[test]
fn interval_below_a_slot_counts_every_run() {
    let loads = loads_of([(every(60, 7), 1, MINUTE)]);
    assert!(loads.by_slot(Measure::Runs).iter().all(|runs| *runs == 15.0));
    assert_eq!(loads.by_slot(Measure::Cost)[0], 900.0);
    assert_eq!(total(&loads, Measure::Next), 1.0);
    let loads = loads_of([(every(420, 0), 1, MINUTE)]);
    assert!(loads.by_slot(Measure::Runs).iter().all(|runs| [2.0, 3.0].contains(runs)));
    assert_eq!(total(&loads, Measure::Runs), 604_800.0 / 420.0);
}

#[test]
fn clock_and_periodic_jobs_count() {
    let loads = loads_of([(nine(), 1, MINUTE)]);
    let runs = loads.by_slot(Measure::Runs);
    let hit: Vec<usize> = (0..672).filter(|slot| runs[*slot] > 0.0).collect();
    assert_eq!(hit, (0..7).map(|day| day * 96 + 84).collect::<Vec<_>>());
    assert_eq!(total(&loads, Measure::Next), 1.0);
    let period = Periodic::new(Span::from_secs(86_400), None).unwrap().period();
    let often =
        LoadProfile { recurrence: Recurrence::Often(period), fixed: true, from: None, hours: None };
    let loads = loads_of([(often, 96, MINUTE)]);
    assert!(loads.by_slot(Measure::Runs).iter().all(|runs| (runs - 1.0).abs() < 1e-9));
    assert!((total(&loads, Measure::Next) - 96.0).abs() < 1e-9);
}

#[test]
fn coarse_phase_is_shared_among_its_slots() {
    let mut loads = loads_with_slot(Span::from_secs(300));
    loads.add(&daily(0), 3, MINUTE);
    assert_eq!(loads.by_slot(Measure::Runs)[143..148], [0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(loads.by_slot(Measure::Cost)[144], 20.0);
    assert_eq!(total(&loads, Measure::Next), 3.0);
}

fn profile() -> impl Strategy<Value = LoadProfile> {
    let intervals = vec![60, 420, 900, 1200, 1500, 3600, 6000, 25_200, 86_400, 604_800, 864_000];
    prop_oneof![
        (prop::sample::select(intervals), 0_i64..1_000_000)
            .prop_map(|(secs, offset)| every(secs, offset)),
        Just(nine()),
        (0_i32..3000).prop_map(|slot| LoadProfile {
            recurrence: Recurrence::Once(Slot(Slot::of(NOON).0 + slot)),
            fixed: true,
            from: None,
            hours: None,
        }),
    ]
}

proptest! {
    #[test]
    fn counts_match_a_recount_after_adds_and_removes(
        kept in prop::collection::vec((profile(), 1_u64..50, 0_u64..9000), 0..12),
        removed in prop::collection::vec((profile(), 1_u64..50, 0_u64..9000), 0..12),
        slot in prop::sample::select(vec![60_u64, 300, 900, 1200, 3600]),
    ) {
        let mut loads = loads_with_slot(Span::from_secs(slot));
        let mut recount = loads.clone();
        for (profile, jobs, secs) in &removed {
            loads.add(profile, *jobs, Span::from_secs(*secs));
        }
        for (profile, jobs, secs) in &kept {
            loads.add(profile, *jobs, Span::from_secs(*secs));
            recount.add(profile, *jobs, Span::from_secs(*secs));
        }
        for (profile, jobs, secs) in removed.iter().rev() {
            loads.remove(profile, *jobs, Span::from_secs(*secs));
        }
        // The test does not compare the highest cost of a single run, because that cost is unknown
        // after a job was removed.
        loads.heaviest.clone_from(&recount.heaviest);
        prop_assert_eq!(loads, recount);
    }
}
