//! `cargo xtask test`: all checks that a change must pass.

use crate::program::{cargo, check, finish, finish_with_output, succeed};
use crate::steps::Steps;
use crate::tally::Tally;
use crate::{advisories, alerts, api_fuzz, browser, provision, tidy, workspace};
use anyhow::{Result, bail};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The environment variable with the superuser's URL of the PostgreSQL server on which tests create
/// databases.
pub const POSTGRES_VARIABLE: &str = "EVENKEEL_TEST_POSTGRES";

const QUICK_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time limit of builds is high, because the first build takes long on a small machine.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
const TEST_LIMIT: Duration = Duration::from_secs(90 * 60);

/// Runs all checks. Prints errors before the summary, so that the summary is the last line.
pub fn run(extra: &[String]) -> ExitCode {
    let mut steps = Steps::default();
    let mut tally = Tally::default();
    let outcome = all(&mut steps, &mut tally, extra);
    steps.print_times();
    if let Err(error) = &outcome {
        println!("\n{error:#}");
    }
    println!("{tally}");
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all(steps: &mut Steps, tally: &mut Tally, extra: &[String]) -> Result<()> {
    steps.take("install missing tools", provision::everything)?;
    steps.take("cargo fmt --all --check", || {
        succeed(&mut cargo(&["fmt", "--all", "--check"]), QUICK_LIMIT)
    })?;
    steps.take("cargo clippy --workspace --all-targets -- -D warnings", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        succeed(&mut cargo(&arguments), BUILD_LIMIT)
    })?;
    steps.take("cargo xtask tidy", tidy::run)?;
    steps.take("cargo xtask advisories", advisories::run_if_possible)?;
    steps.take("cargo xtask alerts", alerts::run_if_possible)?;
    // Dropping `server` stops PostgreSQL, even if a step fails.
    let server = steps
        .take("start a private PostgreSQL", || Ok(PrivatePostgres::start(Options::unit_test())?))?;
    if provision::has_nextest() {
        steps.take("cargo nextest run --workspace", || nextest(&server, tally, extra))?;
    } else {
        println!("\ncargo-nextest is not installed: cargo test runs the tests");
        let outcomes = LIBTEST_RUNS
            .map(|(name, choice)| steps.take(name, || libtest(&server, tally, extra, choice)));
        // The second `cargo test` is executed even if the first `cargo test` fails.
        outcomes.into_iter().collect::<Result<()>>()?;
    }
    steps.take("cargo test --workspace --doc", || {
        counted(&mut cargo(&["test", "--workspace", "--doc"]), &server, tally)
    })?;
    // The tested server is built with the same packages as the tests, so that cargo rebuilds
    // little; see `api_fuzz::against_both`.
    let built = ["build", "--workspace", "--all-targets"];
    steps.take("cargo xtask browser", || browser::run_if_possible(&built, tally))?;
    steps.take("cargo xtask api-fuzz", || {
        api_fuzz::against_both(&server, &built, &Default::default())
    })
}

/// Tests that start and kill processes have `crash_` in their names and run one at a time;
/// `.config/nextest.toml` contains the same rule for nextest.
const LIBTEST_RUNS: [(&str, &[&str]); 2] = [
    ("cargo test --workspace -- --skip crash_", &["--skip", "crash_"]),
    ("cargo test --workspace -- crash_ --test-threads 1", &["crash_", "--test-threads", "1"]),
];

/// Runs the tests without nextest. Test binaries run one after another, and the tests of a binary
/// run in threads.
fn libtest(
    server: &PrivatePostgres,
    tally: &mut Tally,
    extra: &[String],
    choice: &[&str],
) -> Result<()> {
    let mut command = cargo(&["test", "--workspace", "--lib", "--bins", "--tests"]);
    command.arg("--no-fail-fast").args(extra).arg("--").args(choice);
    counted(&mut command, server, tally)
}

/// Runs `cargo test` and adds its results to `tally`.
fn counted(command: &mut Command, server: &PrivatePostgres, tally: &mut Tally) -> Result<()> {
    command.env(POSTGRES_VARIABLE, server.url());
    let (status, output) = finish_with_output(command, TEST_LIMIT)?;
    *tally = tally.plus(Tally::from_libtest(&output));
    check(status)
}

fn nextest(server: &PrivatePostgres, tally: &mut Tally, extra: &[String]) -> Result<()> {
    let report = workspace::target()?.join("nextest/default/junit.xml");
    // The old test report is deleted, because it would be counted if nextest writes no new report.
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let mut command = cargo(&["nextest", "run", "--workspace", "--profile", "default"]);
    let status = finish(command.args(extra).env(POSTGRES_VARIABLE, server.url()), TEST_LIMIT)?;
    if report.exists() {
        *tally = tally.plus(Tally::from_junit(&fs::read_to_string(&report)?)?);
    } else if status.success() {
        bail!("nextest wrote no report to {}", report.display());
    }
    check(status)
}
