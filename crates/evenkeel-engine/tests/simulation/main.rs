//! Simulates clusters with the real loops of the engine, a model of the store and simulated time.
//!
//! **What is simulated.** `world` runs up to three nodes in one process on a single thread. Tokio's
//! clock is paused, so hours pass in seconds. The store is the in-memory model that is also the
//! reference of the conformance tests for stores. All randomness comes from the seed, so a seed
//! always produces the same simulation. `small_cluster` is a simpler cluster for tests of single
//! scenarios (modules `activity`, `deadlines`, `dispatch_order`, `downtime`, `failures`,
//! `lost_workers`, `pools`, `waiting`, `year`).
//!
//! **Faults** (`world::faults`, `faulty`): nodes crash, restart, drain or freeze; the store is
//! unreachable for one or all nodes, loses answers, commits late, or has a full disk; the
//! database's clock is set forward or back; some signals are lost. At the same time, clients create
//! and trigger jobs, send commands, and override outcomes.
//!
//! **Invariants** (`checker` and the `*_checks` modules) are checked from the records of executed
//! attempts and the final state of the store:
//! - I1: each scheduled time has one finished run or one skip record; I11: no run has an unexpected
//!   scheduled time.
//! - I2: each pair of attempt and fence is executed at most once.
//! - I3: executions of a job do not overlap, unless the overlap policy allows it.
//! - I4: the stored result of an attempt comes from its last owner.
//! - I5: without faults, a run starts within a second.
//! - I6: no run starts early, in a blackout, or on a forbidden node.
//! - I7: after all faults have ended, no attempt is left without an owner.
//! - I8: accepted triggers, commands and overrides take effect.
//! - Concurrency limits, the dispatch order and job policies are respected, and checkpoints reach
//!   the next attempt.
//!
//! **Replaying a seed.** A failed simulation prints its seed. This command repeats the same
//! simulation: `EVENKEEL_SIM_SEED=n cargo nextest run -p evenkeel-engine --test simulation
//! one_seed`

#![expect(clippy::unwrap_used, reason = "a simulation that cannot continue has failed")]

mod activity;
mod body;
mod checker;
mod command_checks;
mod deadlines;
mod dispatch_order;
mod downtime;
mod failures;
mod faulty;
mod limit_checks;
mod lost_workers;
mod override_checks;
mod policies;
mod pools;
mod small_cluster;
mod waiting;
mod world;
mod year;

use world::{Faults, Outcome, Scenario};

/// Each range of seeds has its own kind of scenario, so the seed alone is enough to replay a
/// simulation.
fn scenario_of(seed: u64) -> Scenario {
    let (crashes, store) = (true, true);
    let crashes_and_store = Faults { crashes, store, ..Faults::NONE };
    let commands = |fault_every, faults| Scenario {
        commands: true,
        fault_every,
        ..Scenario::dense(seed, faults)
    };
    // Every second scenario also limits the active runs of the tenant and of the lane.
    let limits = |faults| Scenario {
        limits: true,
        shared_limits: seed.is_multiple_of(2).then_some((12, 10)),
        ..Scenario::dense(seed, faults)
    };
    let overrides = |faults: Faults| Scenario {
        overrides: true,
        // If the database's clock is set, the time of a pause command cannot be compared with start
        // times.
        commands: seed % 2 == 1 && !faults.time,
        fault_every: 10,
        ..Scenario::dense(seed, faults)
    };
    match seed {
        0..100 => Scenario::dense(seed, Faults::NONE),
        100..200 => Scenario::dense(seed, Faults::CRASHES),
        200..300 => Scenario::dense(seed, Faults::STORE),
        300..400 => Scenario::dense(seed, Faults::TIME),
        400..410 => commands(20, crashes_and_store),
        410..500 => commands(10, Faults::NONE),
        500..508 => Scenario { fault_every: 30, ..limits(Faults::ALL) },
        508..600 => limits(Faults::NONE),
        600..602 => overrides(Faults::NONE),
        602..608 => overrides(Faults::ALL),
        608..700 => overrides(crashes_and_store),
        700..706 => Scenario::dense(seed, Faults::FULL),
        // Seeds 706 to 799 simulate a single node that does not share its store, as with SQLite.
        706..800 => Scenario { nodes: 1, ..Scenario::dense(seed, Faults::FULL) },
        800..1000 => Scenario::dense(seed, Faults::ALL),
        1000.. => Scenario::long(seed, Faults::ALL),
    }
}

fn simulate(seeds: std::ops::Range<u64>) -> Outcome {
    let mut all = Outcome::default();
    for seed in seeds {
        let outcome = world::run(scenario_of(seed));
        assert!(
            outcome.violations.is_empty(),
            "seed {seed} has {} violations:\n{}",
            outcome.violations.len(),
            outcome.violations[..outcome.violations.len().min(10)].join("\n")
        );
        all.add(&outcome);
    }
    eprintln!("{all:?}");
    all
}

#[test]
fn healthy_cluster_is_never_late_by_a_second() {
    let outcome = simulate(0..6);
    assert!(outcome.bodies > 5_000, "{outcome:?}");
    assert!(outcome.latest_ms <= 1_000, "{outcome:?}");
}

#[test]
fn crashes_lose_and_duplicate_no_run() {
    let outcome = simulate(100..112);
    assert!(outcome.faults > 20, "{outcome:?}");
}

#[test]
fn lost_answers_and_outages_lose_and_duplicate_no_run() {
    let outcome = simulate(200..212);
    assert!(outcome.faults > 100, "{outcome:?}");
}

#[test]
fn full_disks_lose_and_duplicate_no_run_and_loops_back_off() {
    let outcome = simulate(700..706);
    assert!(outcome.faults > 100, "{outcome:?}");
    simulate(706..710);
}

#[test]
fn frozen_nodes_and_clock_steps_lose_and_duplicate_no_run() {
    let outcome = simulate(300..312);
    assert!(outcome.faults > 20, "{outcome:?}");
}

#[test]
fn all_faults_together_over_thousands_of_hours() {
    let outcome = simulate(1000..1060);
    assert!(outcome.simulated_hours >= 2_000, "{outcome:?}");
    assert!(outcome.faults > 1_000, "{outcome:?}");
}

#[test]
fn limits_hold_without_starvation_under_all_faults() {
    let outcome = simulate(500..508);
    assert!(outcome.faults > 100, "{outcome:?}");
    simulate(508..512);
}

#[test]
fn commands_hold_and_lose_and_duplicate_no_run() {
    let outcome = simulate(400..410);
    assert!(outcome.faults > 100, "{outcome:?}");
    simulate(410..412);
}

#[test]
fn overrides_hold_and_end_the_bodies_of_their_attempts() {
    simulate(600..608);
    let outcome = simulate(608..616);
    assert!(outcome.faults > 100, "{outcome:?}");
}

#[test]
fn same_seed_gives_the_same_simulation() {
    for seed in [7, 8] {
        let first = world::run(Scenario::dense(seed, Faults::ALL));
        let second = world::run(Scenario::dense(seed, Faults::ALL));
        assert_eq!(first.fingerprint, second.fingerprint, "seed {seed}");
        assert!(first.bodies > 0);
    }
}

/// Replays the seed in `EVENKEEL_SIM_SEED`.
#[test]
fn one_seed() {
    #[expect(clippy::disallowed_methods, reason = "the seed is chosen by an operator")]
    let seed = std::env::var("EVENKEEL_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(1);
    simulate(seed..seed + 1);
}
