//! Tasks for developers and CI: `cargo xtask --help`.
#![expect(clippy::print_stdout, reason = "a command-line tool prints to standard output")]

mod advisories;
mod alerts;
mod ambient;
mod api_fuzz;
mod browser;
mod crash;
mod cron_oracle;
mod mutants;
mod perf;
mod postgres;
mod program;
mod provision;
mod python;
mod screenshots;
mod steps;
mod tally;
mod test;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Developer tasks of Evenkeel.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run all checks: install missing tools, check formatting, lints and source rules, and run
    /// every test
    Test {
        /// Arguments for `cargo nextest run`, or for `cargo test` if nextest is not installed
        #[arg(last = true)]
        extra: Vec<String>,
    },
    /// Check rules of the source tree that the compiler does not check
    Tidy,
    /// Run a private PostgreSQL server until Enter or Ctrl-C
    Postgres,
    /// Test the tests: apply each patch in mutants/, which breaks the code, and expect a test to
    /// fail
    Mutants {
        /// Run only mutants whose name contains one of these texts
        names: Vec<String>,
    },
    /// Kill, freeze and restart real servers while jobs run, and check the results
    Crash(crash::Options),
    /// Compare the speed of the hot path with the recorded speed, as shares of the speed of the bare
    /// database
    Perf(perf::Options),
    /// Check dependencies against the RustSec database; needs cargo-deny or cargo-audit, and a network
    Advisories,
    /// Check the alert rules in tools/alerts with Prometheus' promtool, and test when they fire
    Alerts,
    /// Send generated requests to real servers on both stores; needs Python and a network
    ApiFuzz(api_fuzz::Options),
    /// Test the dashboard in Chromium; needs Python and, the first time, a network
    Browser {
        /// Run only tests whose name contains one of these texts
        names: Vec<String>,
    },
    /// Take pictures of all pages of the dashboard, in target/screenshots
    Screenshots,
    /// Compare Evenkeel's cron schedules with two independent implementations; needs Python and a
    /// network
    CronOracle(cron_oracle::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test { extra } => return test::run(&extra),
        Task::Tidy => tidy::run(),
        Task::Postgres => postgres::run(),
        Task::Mutants { names } => mutants::run(&names),
        Task::Crash(options) => crash::run(&options),
        Task::Perf(options) => perf::run(&options),
        Task::Advisories => advisories::run(),
        Task::Alerts => alerts::run(),
        Task::ApiFuzz(options) => api_fuzz::run(&options),
        Task::Browser { names } => browser::run(&names),
        Task::Screenshots => screenshots::run(),
        Task::CronOracle(options) => cron_oracle::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
