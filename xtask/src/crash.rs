//! `cargo xtask crash`: kills, freezes and restarts real servers while jobs run.

use crate::program::{cargo, succeed};
use crate::provision;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Time that the crash test may take in addition to twice its `minutes`, to start and drain servers
/// and to check the results.
const REST_LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Args)]
pub struct Options {
    /// Duration of the test in minutes
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Seed of the faults; the seed of an earlier run repeats its faults [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Store of the servers: postgres or sqlite
    #[arg(long, default_value = "postgres", value_parser = ["postgres", "sqlite"])]
    store: String,
    /// Number of servers; always 1 on SQLite
    #[arg(long, default_value_t = 3)]
    nodes: u64,
    /// Rebalance jobs while they fire, instead of injecting faults
    #[arg(long)]
    rebalance: bool,
    /// Build with optimisation
    #[arg(long)]
    release: bool,
}

pub fn run(options: &Options) -> Result<()> {
    if options.store == "postgres" {
        provision::postgres()?;
    }
    let profile: &[&str] = if options.release { &["--release"] } else { &[] };
    // The server and the crash test are built one by one. Building both packages together would
    // change the features of their dependencies and rebuild the dependencies each time.
    for package in ["evenkeel", "evenkeel-crash-test"] {
        let mut build = cargo(&["build", "--package", package]);
        succeed(build.args(profile), BUILD_LIMIT)
            .with_context(|| format!("cannot build {package}"))?;
    }
    let mut test = cargo(&["run", "--quiet", "--package", "evenkeel-crash-test"]);
    test.args(profile).args(["--bin", "evenkeel-crash-test", "--"]).args(arguments(options));
    let minutes = Duration::from_secs(options.minutes.saturating_mul(60));
    // The crash test has already printed why it failed.
    succeed(&mut test, minutes.saturating_mul(2).saturating_add(REST_LIMIT))
        .map_err(|error| anyhow!("the crash test {error}"))
}

fn arguments(options: &Options) -> Vec<String> {
    let Options { minutes, seed, store, nodes, rebalance, release: _ } = options;
    let mut arguments = vec![
        format!("--minutes={minutes}"),
        format!("--store={store}"),
        format!("--nodes={nodes}"),
    ];
    arguments.extend(seed.map(|seed| format!("--seed={seed}")));
    arguments.extend(rebalance.then(|| "--rebalance".to_owned()));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_passed_to_the_crash_test() {
        let options = Options {
            minutes: 3,
            seed: Some(7),
            store: "sqlite".to_owned(),
            nodes: 2,
            rebalance: true,
            release: true,
        };
        let expected = ["--minutes=3", "--store=sqlite", "--nodes=2", "--seed=7", "--rebalance"];
        assert_eq!(arguments(&options), expected);
    }
}
