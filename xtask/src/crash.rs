//! `cargo xtask crash`: real servers, killed, frozen and restarted while jobs run.

use crate::program::{cargo, succeed};
use crate::provision;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// For everything that is not the test: start, drain, judgement.
const REST_LIMIT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Args)]
pub struct Options {
    /// How long to go on
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Repeat the faults of an earlier run [default: others each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Where the servers keep their jobs: postgres or sqlite
    #[arg(long, default_value = "postgres", value_parser = ["postgres", "sqlite"])]
    store: String,
    /// How many servers; always one on SQLite
    #[arg(long, default_value_t = 3)]
    nodes: u64,
    /// Move jobs to other times and back while they fire, instead of breaking anything
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
    // One by one: together they would share features, and be built anew for it each time.
    for package in ["evenkeel", "evenkeel-crash-test"] {
        let mut build = cargo(&["build", "--package", package]);
        succeed(build.args(profile), BUILD_LIMIT)
            .with_context(|| format!("{package} can't be built"))?;
    }
    let mut test = cargo(&["run", "--quiet", "--package", "evenkeel-crash-test"]);
    test.args(profile).args(["--bin", "evenkeel-crash-test", "--"]).args(arguments(options));
    let minutes = Duration::from_secs(options.minutes.saturating_mul(60));
    // It has said what is wrong.
    match succeed(&mut test, minutes.saturating_mul(2).saturating_add(REST_LIMIT)) {
        Ok(()) => Ok(()),
        Err(error) => bail!("the crash test {error}"),
    }
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
    fn what_was_asked_for_is_passed_on() {
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
