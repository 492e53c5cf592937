use proptest::prelude::*;

use super::*;
use crate::balance::test_loads::{NOON, daily, every, interval, loads_of, loads_with_slot, nine};
use crate::balance::{LoadProfile, Measure};
use crate::blackout::LocalHours;
use crate::job::Bounds;
use crate::zone::Zone;

const MINUTE: Span = Span::from_secs(60);

fn settings(policy: Policy) -> BalanceSettings {
    BalanceSettings { policy, ..BalanceSettings::default() }
}

fn to_place(definition: &Definition, seed: u64) -> JobToPlace<'_> {
    JobToPlace { definition, seed, cost: MINUTE, after: NOON }
}

fn place(policy: Policy, definition: &Definition, loads: &Loads) -> Timestamp {
    let job = to_place(definition, 77);
    first_time(&settings(policy), job, loads, loads, NodeTurn::ALONE).unwrap()
}

fn slot_of(time: Timestamp) -> usize {
    (time.since(NOON).as_micros() / 900_000_000) as usize
}

const BOTH: [Policy; 2] = [Policy::Next, Policy::Projected];

#[test]
fn new_job_avoids_loaded_slots() {
    let loads = loads_of([(daily(52), 2, MINUTE), (daily(56), 1, MINUTE)]);
    for policy in BOTH {
        let slot = slot_of(place(policy, &interval(6 * 3600), &loads));
        assert_eq!(slot, 0, "the first best wins");
    }
    let full = (0..24).filter(|slot| *slot != 13);
    let loads = loads_of(full.map(|slot| (daily(48 + slot), 1, MINUTE)));
    for policy in BOTH {
        assert_eq!(slot_of(place(policy, &interval(6 * 3600), &loads)), 13);
    }
}

#[test]
fn projected_policy_sees_later_runs_and_next_does_not() {
    // An hourly job whose next run is in time slot 0 also runs in time slots 4, 8, …
    let loads = loads_of([(every(3600, 0), 1, MINUTE), (daily(48 + 1), 1, MINUTE)]);
    let two_hourly = interval(7200);
    assert_eq!(slot_of(place(Policy::Next, &two_hourly, &loads)), 2);
    let loads = loads_of([
        (every(3600, 0), 1, MINUTE),
        (every(3600, 900), 1, MINUTE),
        (every(7200, 1800), 1, MINUTE),
        (every(7200, 2700), 1, MINUTE),
    ]);
    assert_eq!(slot_of(place(Policy::Next, &two_hourly, &loads)), 4, "taken from hour to hour");
    assert_eq!(slot_of(place(Policy::Projected, &two_hourly, &loads)), 6, "free for ever");
}

#[test]
fn slot_with_heavy_jobs_is_full_sooner() {
    let heavy = Span::from_secs(3600);
    let mut loads = loads_of((0..96).map(|slot| (daily(slot), 2, MINUTE)));
    loads.add(&daily(48), 1, heavy);
    loads.remove(&daily(48), 2, MINUTE);
    let day = interval(86_400);
    assert_eq!(slot_of(place(Policy::Next, &day, &loads)), 0);
    assert_ne!(slot_of(place(Policy::Projected, &day, &loads)), 0);
}

#[test]
fn jobs_of_one_slot_have_seconds_far_apart_unless_exact() {
    // All time slots except number 60 are full.
    let full = (0..96).filter(|slot| *slot != 60);
    let full = full.map(|slot| (daily(slot), 99, MINUTE.saturating_mul(99)));
    let mut loads = loads_of(full);
    let day = interval(86_400);
    let mut seconds: Vec<u64> = Vec::new();
    for seed in 0..30 {
        // All jobs have the same cost, so only the number of runs decides which time slot is
        // chosen.
        let job = to_place(&day, 77);
        let policy = settings(BOTH[seed % 2]);
        let time = first_time(&policy, job, &loads, &loads, NodeTurn::ALONE).unwrap();
        assert_eq!(slot_of(time), 12);
        loads.add(&LoadProfile::of(&day, time).unwrap(), 1, MINUTE);
        seconds.push(time.since(NOON).as_micros() / 1_000_000 % 900);
    }
    seconds.sort_unstable();
    let least = seconds.windows(2).map(|two| two[1] - two[0]).min().unwrap();
    assert!(least >= 900 / 30 / 3, "{seconds:?}");
    let exact = Interval::new(Span::from_secs(86_400), None).unwrap().with_exact(true);
    let exact = Definition::noop(Schedule::Interval(exact));
    let at = place(Policy::Next, &exact, &loads_of([]));
    assert_eq!(at, NOON.saturating_add(Slot::LENGTH));
    assert!(LoadProfile::of(&exact, NOON).unwrap().fixed);
}

#[test]
fn slots_do_not_all_begin_with_the_same_second() {
    let mut loads = loads_of([]);
    let day = interval(86_400);
    let mut seconds = std::collections::BTreeSet::new();
    for _ in 0..96 {
        let time = place(Policy::Projected, &day, &loads);
        loads.add(&LoadProfile::of(&day, time).unwrap(), 1, MINUTE);
        seconds.insert(time.since(NOON).as_micros() / 1_000_000 % 900);
    }
    assert!(seconds.len() > 80, "{seconds:?}");
}

#[test]
fn configured_times_are_not_placed() {
    let loads = loads_of([(nine(), 1, MINUTE)]);
    let anchored = Interval::new(Span::from_secs(3600), Some(NOON)).unwrap();
    let start_at = Some(NOON.saturating_add(Span::from_secs(12_345)));
    let bounds = Bounds { start_at, ..Bounds::default() };
    for definition in [
        Definition::noop(Schedule::Interval(anchored)),
        Definition { bounds, ..interval(3600) },
        Definition::noop(Schedule::Once(crate::schedule::Once::NOW)),
    ] {
        assert!(!definition.is_placed());
        let job = to_place(&definition, 7);
        let first = first_time(&settings(Policy::Next), job, &loads, &loads, NodeTurn::ALONE);
        assert_eq!(first, definition.timetable().first_after(NOON));
    }
}

#[test]
fn no_first_time_is_after_the_end() {
    let loads = loads_of((0..90).map(|slot| (daily(48 + slot), 1, MINUTE)));
    let end_at = Some(NOON.saturating_add(Span::from_secs(3600)));
    let ending = |secs, end_at| {
        let bounds = Bounds { end_at, ..Bounds::default() };
        Definition { bounds, ..interval(secs) }
    };
    for policy in BOTH {
        assert!(Some(place(policy, &ending(86_400, end_at), &loads)) <= end_at);
    }
    for secs in [60, 86_400] {
        let over = ending(secs, Some(NOON));
        let job = to_place(&over, 7);
        let first = first_time(&settings(Policy::Next), job, &loads, &loads, NodeTurn::ALONE);
        assert_eq!(first, None);
    }
}

#[test]
fn document_window_searches_a_whole_day() {
    let loads = loads_of((0..95).map(|slot| (daily(48 + slot), 1, MINUTE)));
    let document =
        BalanceSettings { search_window: SearchWindow::Document, ..settings(Policy::Next) };
    let half_hourly = interval(1800);
    let job = to_place(&half_hourly, 7);
    let first = first_time(&document, job, &loads, &loads, NodeTurn::ALONE).unwrap();
    assert_eq!(slot_of(first), 95);
    assert!(slot_of(place(Policy::Next, &half_hourly, &loads)) < 2);
}

#[test]
fn own_tenant_counts_first_then_all_then_the_nodes_turn() {
    let own = loads_of((0..90).map(|slot| (daily(48 + slot), 1, MINUTE)));
    let mut all = own.clone();
    (90..93).for_each(|slot| all.add(&daily(48 + slot), 5, MINUTE));
    let day = interval(86_400);
    for policy in BOTH {
        let place = |turn| {
            slot_of(first_time(&settings(policy), to_place(&day, 7), &own, &all, turn).unwrap())
        };
        assert_eq!(place(NodeTurn::ALONE), 93);
        let mut slots: Vec<usize> = (0..3).map(|mine| place(NodeTurn { mine, of: 3 })).collect();
        slots.sort_unstable();
        assert_eq!(slots, [93, 94, 95]);
    }
}

#[test]
fn blackouts_are_avoided_and_preferred_hours_sought() {
    let berlin = Zone::get("Europe/Berlin").unwrap();
    let hours = |start: &str, end: &str| LocalHours {
        start: start.parse().unwrap(),
        end: end.parse().unwrap(),
    };
    let night = Definition {
        timezone: berlin,
        prefer_window: Some(hours("22:00", "06:00")),
        blackout_periods: vec![hours("00:00", "05:45")],
        ..interval(86_400)
    };
    // The preferred hours are 21:00 to 23:00 UTC and the 15 minutes before 05:00.
    let mut taken: Vec<usize> = Vec::new();
    let mut loads = loads_of([]);
    for _ in 0..9 {
        let time = place(BOTH[taken.len() % 2], &night, &loads);
        taken.push(slot_of(time));
        loads.add(&LoadProfile::of(&night, time).unwrap(), 1, MINUTE);
    }
    taken.sort_unstable();
    assert_eq!(taken, [36, 37, 38, 39, 40, 41, 42, 43, 67]);
}

#[test]
fn interval_below_a_slot_is_placed_by_second() {
    let mut loads = loads_of([]);
    let minute = interval(60);
    let mut seconds = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let job = to_place(&minute, seed * 60);
        let first =
            first_time(&settings(Policy::Next), job, &loads, &loads, NodeTurn::ALONE).unwrap();
        loads.add(&LoadProfile::of(&minute, first).unwrap(), 1, MINUTE);
        let secs = first.since(NOON).as_micros() / 1_000_000;
        assert!((1..=60).contains(&secs));
        seconds.insert(secs % 60);
    }
    assert_eq!(seconds.len(), 50, "each has a second of its own");
    let spread = loads.spread_by_second().unwrap();
    assert_eq!((spread.score, spread.peak), (1.0, 1.0));
}

#[test]
fn monthly_jobs_are_spread_over_the_month() {
    let month = interval(30 * 86_400);
    for policy in BOTH {
        let mut loads = loads_of([]);
        for seed in 0..2880 {
            let job = JobToPlace { seed, ..to_place(&month, seed) };
            let first = first_time(&settings(policy), job, &loads, &loads, NodeTurn::ALONE);
            loads.add(&LoadProfile::of(&month, first.unwrap()).unwrap(), 1, MINUTE);
        }
        assert!(loads.far.next[1..2880].iter().all(|jobs| *jobs == 1), "{policy:?}");
    }
}

#[test]
fn slots_of_a_few_seconds_are_filled_evenly() {
    let mut loads = loads_with_slot(Span::from_secs(2));
    let settings = BalanceSettings { slot: Span::from_secs(2), ..settings(Policy::Projected) };
    let ten = interval(10);
    for seed in 0..50 {
        let job = to_place(&ten, seed * 7919);
        let first = first_time(&settings, job, &loads, &loads, NodeTurn::ALONE).unwrap();
        loads.add(&LoadProfile::of(&ten, first).unwrap(), 1, MINUTE);
    }
    assert!(loads.by_slot(Measure::Runs).iter().all(|runs| (*runs - 10.0).abs() < 1e-9));
}

/// The load of one tenant, and the load of all tenants including that tenant.
fn some_loads() -> impl Strategy<Value = (Loads, Loads)> {
    let secs = vec![900, 1200, 3600, 6000, 25_200, 86_400, 129_600, 604_800, 864_000];
    let one = (prop::sample::select(secs), 0_i64..1_000_000, 1_u64..4, 1_u64..9000);
    let some = || prop::collection::vec(one.clone(), 0..150);
    (some(), some()).prop_map(|(mine, theirs)| {
        let mut own = loads_of([(nine(), 5, MINUTE)]);
        let add = |loads: &mut Loads, some: Vec<(i64, i64, u64, u64)>| {
            for (secs, offset, jobs, cost) in some {
                loads.add(&every(secs, offset), jobs, Span::from_secs(cost));
            }
        };
        add(&mut own, mine);
        let mut all = own.clone();
        add(&mut all, theirs);
        (own, all)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_candidate_has_less_load_than_the_chosen_one(
        (own, all) in some_loads(), seed in any::<u64>(),
        secs in prop::sample::select(vec![900_i64, 1200, 3600, 7200, 25_200, 86_400, 604_800]),
        late in 0_u64..900_000_000,
    ) {
        let definition = interval(secs);
        let after = NOON.saturating_add(Span::from_micros(late));
        let job = JobToPlace { after, ..to_place(&definition, seed) };
        let place = |policy| first_time(&settings(policy), job, &own, &all, NodeTurn::ALONE).unwrap();
        let candidates: Vec<Timestamp> = (0..=secs / 900 + 1)
            .map(|slot| NOON.as_micros() + (slot * 900 + (seed % 900) as i64) * 1_000_000)
            .map(Timestamp::from_micros)
            .filter(|time| *time > after && time.since(after) <= Span::from_secs(secs.unsigned_abs()))
            .collect();

        let picked = place(Policy::Next);
        let (mine, everybodys) = (own.by_slot(Measure::Next), all.by_slot(Measure::Next));
        let key = |time: Timestamp| {
            let slot = slot_of(time);
            // The result of `by_slot` ends at the balancing horizon, so later time slots are looked
            // up in `MonthLoads`.
            let of = |loads: &[f64], far: &Loads| loads.get(slot).copied()
                .unwrap_or_else(|| f64::from(far.far.next[slot]));
            (of(&mine, &own), of(&everybodys, &all), slot)
        };
        // The first run of a job that runs in every time slot may be in either of two time slots.
        let is_in_a_slot = |time: Timestamp| {
            secs == 900 || candidates.iter().any(|one| slot_of(*one) == slot_of(time))
        };
        prop_assert!(is_in_a_slot(picked));
        for other in candidates.iter().filter(|_| secs > 900) {
            prop_assert!(key(picked) <= key(*other), "{picked} {other}");
        }

        let picked = place(Policy::Projected);
        prop_assert!(is_in_a_slot(picked));
        let key = |loads: &Loads, time: Timestamp| {
            let (cost, runs) = (loads.by_slot(Measure::Cost), loads.by_slot(Measure::Runs));
            let each = cost.iter().sum::<f64>() / runs.iter().sum::<f64>();
            let load = |slot: usize| cost[slot] + each * runs[slot];
            let hit = (0..(604_800 / secs).max(1)).map(|nth| {
                let secs = slot_of(time) as i64 * 900 + (seed % 900) as i64 + nth * secs;
                load((secs / 900 % 672) as usize)
            });
            hit.map(|load| load * load).sum::<f64>()
        };
        for other in &candidates {
            prop_assert!(key(&own, picked) <= key(&own, *other) * (1.0 + 1e-9));
        }
    }

    #[test]
    fn first_time_is_in_the_future_and_within_one_interval(
        secs in prop_oneof![1_i64..100_000, Just(864_000), Just(2_592_000), Just(31_536_000)],
        late in 0_u64..2_000_000_000, seed in any::<u64>(),
        policy in prop::sample::select(BOTH.to_vec()),
        slot in prop::sample::select(vec![1_u64, 10, 300, 675, 900, 1200, 3600]),
    ) {
        let definition = interval(secs);
        let after = NOON.saturating_add(Span::from_micros(late));
        let mut loads = loads_with_slot(Span::from_secs(slot));
        loads.add(&every(3600, 77), 3, MINUTE);
        loads.add(&nine(), 3, MINUTE);
        let job = JobToPlace { after, ..to_place(&definition, seed) };
        let settings = BalanceSettings { slot: Span::from_secs(slot), ..settings(policy) };
        let first = first_time(&settings, job, &loads, &loads, NodeTurn::ALONE).unwrap();
        prop_assert!(first > after);
        prop_assert!(first.since(after) <= Span::from_secs(secs.unsigned_abs()));
        prop_assert_eq!(first.as_micros() % 1_000_000, 0, "a whole second");
    }
}
