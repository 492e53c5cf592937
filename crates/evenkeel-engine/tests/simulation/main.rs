//! Days of cluster life in seconds: the real loops on a model of the store, with time, chance and
//! faults held by a seed.
//!
//! A failing seed is printed; `EVENKEEL_SIM_SEED=n cargo nextest run -p evenkeel-engine --test
//! simulation one_seed` plays it again, step for step.

#![expect(clippy::unwrap_used, reason = "a simulation that cannot go on has failed")]

mod body;
mod calm;
mod checker;
mod commanded;
mod downtime;
mod failures;
mod faulty;
mod limits;
mod lost;
mod order;
mod policies;
mod pools;
mod promises;
mod waiting;
mod words;
mod world;
mod year;

use world::{Faults, Outcome, Scenario};

fn simulate(seeds: std::ops::Range<u64>, scenario: impl Fn(u64) -> Scenario) -> Outcome {
    let mut all = Outcome::default();
    for seed in seeds {
        let outcome = world::run(scenario(seed));
        assert!(
            outcome.violations.is_empty(),
            "seed {seed} broke {} promises:\n{}",
            outcome.violations.len(),
            outcome.violations[..outcome.violations.len().min(10)].join("\n")
        );
        all.add(&outcome);
    }
    eprintln!("{all:?}");
    all
}

#[test]
fn a_healthy_cluster_is_never_late_by_a_second() {
    let outcome =
        simulate(0..6, |seed| Scenario { hours: 1, ..Scenario::dense(seed, Faults::NONE) });
    assert!(outcome.bodies > 5_000, "{outcome:?}");
    assert!(outcome.latest_ms <= 1_000, "{outcome:?}");
}

#[test]
fn crashes_lose_and_double_nothing() {
    let outcome = simulate(100..112, |seed| Scenario::dense(seed, Faults::CRASHES));
    assert!(outcome.faults > 20, "{outcome:?}");
}

#[test]
fn lost_answers_and_outages_lose_and_double_nothing() {
    let outcome = simulate(200..212, |seed| Scenario::dense(seed, Faults::STORE));
    assert!(outcome.faults > 100, "{outcome:?}");
}

#[test]
fn full_disks_lose_and_double_nothing_and_are_not_tried_all_the_time() {
    let outcome = simulate(700..706, |seed| Scenario::dense(seed, Faults::FULL));
    assert!(outcome.faults > 100, "{outcome:?}");
    // Alone on a store of its own, as on SQLite.
    simulate(706..710, |seed| Scenario { nodes: 1, ..Scenario::dense(seed, Faults::FULL) });
}

#[test]
fn frozen_nodes_and_clock_steps_lose_and_double_nothing() {
    let outcome = simulate(300..312, |seed| Scenario::dense(seed, Faults::TIME));
    assert!(outcome.faults > 20, "{outcome:?}");
}

#[test]
fn all_faults_together_over_thousands_of_hours() {
    let outcome = simulate(1000..1060, |seed| Scenario::long(seed, Faults::ALL));
    assert!(outcome.simulated_hours >= 2_000, "{outcome:?}");
    assert!(outcome.faults > 1_000, "{outcome:?}");
}

#[test]
fn limits_hold_and_nobody_waits_for_ever_whatever_happens() {
    // In every other life all of them together are limited, too.
    let shared_limits = |seed: u64| seed.is_multiple_of(2).then_some((12, 10));
    let outcome = simulate(500..508, |seed| Scenario {
        limits: true,
        shared_limits: shared_limits(seed),
        fault_every: 30,
        ..Scenario::dense(seed, Faults::ALL)
    });
    assert!(outcome.faults > 100, "{outcome:?}");
    simulate(508..512, |seed| Scenario {
        limits: true,
        shared_limits: shared_limits(seed),
        ..Scenario::dense(seed, Faults::NONE)
    });
}

#[test]
fn what_people_do_meanwhile_holds_and_loses_and_doubles_nothing() {
    let (crashes, store) = (true, true);
    let faults = Faults { crashes, store, ..Faults::NONE };
    let outcome = simulate(400..410, |seed| Scenario {
        commands: true,
        fault_every: 20,
        ..Scenario::dense(seed, faults)
    });
    assert!(outcome.faults > 100, "{outcome:?}");
    simulate(410..412, |seed| Scenario {
        commands: true,
        fault_every: 10,
        ..Scenario::dense(seed, Faults::NONE)
    });
}

#[test]
fn what_people_say_about_runs_holds_and_bodies_are_let_go() {
    for (seeds, faults) in [(600..602, Faults::NONE), (602..608, Faults::ALL)] {
        simulate(seeds, |seed| Scenario {
            words: true,
            // When it was stopped says nothing if the clock is set meanwhile.
            commands: seed % 2 == 1 && !faults.time,
            fault_every: 10,
            ..Scenario::dense(seed, faults)
        });
    }
    let (crashes, store) = (true, true);
    let faults = Faults { crashes, store, ..Faults::NONE };
    let outcome = simulate(608..616, |seed| Scenario {
        words: true,
        commands: seed % 2 == 1,
        fault_every: 10,
        ..Scenario::dense(seed, faults)
    });
    assert!(outcome.faults > 100, "{outcome:?}");
}

#[test]
fn the_same_seed_plays_the_same_life() {
    for seed in [7, 8] {
        let first = world::run(Scenario::dense(seed, Faults::ALL));
        let second = world::run(Scenario::dense(seed, Faults::ALL));
        assert_eq!(first.fingerprint, second.fingerprint, "seed {seed}");
        assert!(first.bodies > 0);
    }
}

/// Plays one seed again, chosen from outside.
#[test]
fn one_seed() {
    #[expect(clippy::disallowed_methods, reason = "the way a person chooses a seed")]
    let seed = std::env::var("EVENKEEL_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(1);
    simulate(seed..seed + 1, |seed| {
        if seed >= 1000 {
            Scenario::long(seed, Faults::ALL)
        } else {
            Scenario::dense(seed, faults_of(seed))
        }
    });
}

fn faults_of(seed: u64) -> Faults {
    match seed {
        0..100 => Faults::NONE,
        100..200 => Faults::CRASHES,
        200..300 => Faults::STORE,
        300..400 => Faults::TIME,
        _ => Faults::ALL,
    }
}
