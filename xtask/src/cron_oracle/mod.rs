//! `cargo xtask cron-oracle`: compares Evenkeel's cron schedules with two independent
//! implementations.

mod explain;
mod judge;
mod matrix;
mod record;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::judge::{Answer, Case, Tally};
use self::matrix::{EACH, Expression, ZoneChanges};
use self::record::Recorder;
use crate::{program, python, workspace};

/// Limit for the oracles' computation.
const ORACLE_LIMIT: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Record the results of the other implementations, so that a test needs no Python and no
    /// network
    #[arg(long)]
    record: bool,
    /// Evaluate the saved results of the previous run again
    #[arg(long)]
    again: bool,
}

pub fn run(options: &Options) -> Result<()> {
    let folder = workspace::target()?.join("cron-oracle");
    fs::create_dir_all(&folder)?;
    let (zones, expressions) = (matrix::zones()?, matrix::expressions()?);
    let answers = folder.join("answers.tsv");
    if !options.again {
        run_oracles(&folder, &zones, &expressions, &answers)?;
    }
    compare(&zones, &expressions, &answers, options.record)
}

/// Returns all test cases, in the order in which the oracles receive them.
fn cases<'a>(
    zones: &'a [ZoneChanges],
    expressions: &'a [Expression],
) -> impl Iterator<Item = Case<'a>> {
    let changes =
        zones.iter().flat_map(|zone| zone.changes.iter().map(move |change| (zone, *change)));
    changes.enumerate().flat_map(move |(turn, (zone, change))| {
        (0..EACH).map(move |more| {
            let index = (turn * EACH + more) % expressions.len();
            Case { zone: &zone.zone, change, expression: &expressions[index] }
        })
    })
}

fn run_oracles(
    folder: &Path,
    zones: &[ZoneChanges],
    expressions: &[Expression],
    answers: &Path,
) -> Result<()> {
    let python = python::with_tool(folder, "cron-oracle")?;
    let cases_file = folder.join("cases.tsv");
    let mut file = BufWriter::new(File::create(&cases_file)?);
    for Case { zone, change, expression, .. } in cases(zones, expressions) {
        let (from, until) = expression.range(change);
        writeln!(file, "{zone}\t{}\t{from}\t{until}\t{}", change.at, expression.text)?;
    }
    file.flush()?;
    drop(file);
    println!("running the oracles; this takes some minutes");
    let mut oracle = Command::new(python);
    oracle.arg(workspace::root().join("tools/cron-oracle/oracle.py")).env("PYTHONTZPATH", "");
    oracle.stdin(File::open(&cases_file)?).stdout(File::create(answers)?);
    program::succeed(&mut oracle, ORACLE_LIMIT)
}

fn compare(
    zones: &[ZoneChanges],
    expressions: &[Expression],
    answers: &Path,
    record: bool,
) -> Result<()> {
    let file = File::open(answers).context("no recorded results; run without --again")?;
    let mut lines = BufReader::new(file).lines();
    let mut tally = Tally::default();
    tally.transitions = zones.iter().map(|zone| zone.changes.len()).sum();
    let mut recorder = Recorder::default();
    for case in cases(zones, expressions) {
        let line = lines.next().context("results are incomplete; run without --again")??;
        let answer = Answer::read(&line).with_context(|| format!("unreadable result: {line}"))?;
        let verdict = tally.judge(&case, &answer);
        recorder.add(&case, &verdict);
    }
    let summary = tally.lines(zones.len(), expressions.len());
    println!("cron compared with the oracles: {}", summary.join("\n"));
    ensure!(tally.unexplained() == 0, "some differences have no known explanation");
    if record { recorder.write(expressions, &summary) } else { Ok(()) }
}
