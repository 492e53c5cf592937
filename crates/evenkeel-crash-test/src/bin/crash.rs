//! The long crash test. `cargo xtask crash` builds all programs of the crash test and runs it.
#![expect(clippy::print_stdout, reason = "a command-line tool writes to standard output")]

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Parser;
use evenkeel_crash_test::{
    Plan, Programs, RebalanceSettings, Settings, StoreKind, rebalance_while_firing, run,
};

/// Kills, suspends and restarts servers while jobs run, and checks that no run is lost or
/// duplicated.
#[derive(Debug, Parser)]
struct Arguments {
    /// Duration of the test in minutes
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Seed of an earlier crash test, to repeat its faults [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Store of the servers
    #[arg(long, value_enum, default_value = "postgres")]
    store: StoreKind,
    /// Number of servers; always 1 with SQLite
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=26))]
    nodes: u64,
    /// Rebalance jobs and undo the rebalance while they fire, instead of injecting faults;
    /// PostgreSQL only
    #[arg(long)]
    rebalance: bool,
    /// With --rebalance: number of jobs
    #[arg(long, default_value_t = 10_000, requires = "rebalance")]
    jobs: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (name, is_clean) = match arguments.rebalance {
        true => ("rebalance test", rebalance(&arguments)),
        false => ("crash test", test(&arguments)),
    };
    match is_clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Interval of the jobs in the rebalance test, in seconds.
const REBALANCE_EVERY: u32 = 6;

/// Runs the rebalance test. Returns true if the rebalance test found no violations.
fn rebalance(arguments: &Arguments) -> Result<bool> {
    let report = rebalance_while_firing(&RebalanceSettings {
        nodes: usize::try_from(arguments.nodes)?,
        jobs: arguments.jobs,
        every: REBALANCE_EVERY,
        length: Duration::from_secs(60 * arguments.minutes),
        programs: Programs::find()?,
    })?;
    println!("{report}");
    Ok(report.is_clean())
}

/// Runs the crash test. Returns true if the crash test found no violations.
fn test(arguments: &Arguments) -> Result<bool> {
    let seed = arguments.seed.unwrap_or_else(any_seed);
    let nodes = match arguments.store {
        StoreKind::Postgres => usize::try_from(arguments.nodes)?,
        StoreKind::Sqlite => 1,
    };
    let length = Duration::from_secs(60 * arguments.minutes);
    let plan = Plan::long(seed, length, arguments.store, nodes);
    println!("seed {seed}: {} faults in {} minutes", plan.faults.len(), arguments.minutes);
    let programs = Programs::find()?;
    let outcome = run(&Settings { store: arguments.store, nodes, plan, programs })?;
    println!("{}", outcome.report);
    if let Some(logs) = &outcome.logs {
        println!("  the logs are in {}", logs.display());
    }
    Ok(outcome.report.is_clean())
}

#[expect(clippy::disallowed_methods, reason = "a seed must only differ between runs")]
fn any_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() % 1_000_000
}
