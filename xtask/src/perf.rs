//! `cargo xtask perf`: compares the speed of the hot path with the recorded speed.
//!
//! Absolute figures vary twofold between machines and hours, so the speed is measured as a share of
//! the speed of the bare database, in alternating runs (`evenkeel bench max --rounds`).

use crate::program::{answer_within, cargo, succeed};
use crate::{provision, workspace};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Time that a round may take in addition to its measurements.
const ROUND_LIMIT: Duration = Duration::from_secs(120);
const STORES: [&str; 2] = ["postgres", "sqlite"];
const SHARES: [&str; 2] = ["of_bare_loop", "of_same_promises"];
/// Repeated measurements differ by less than this share of their value.
const NOISE: f64 = 0.08;

#[derive(Debug, Args)]
pub struct Options {
    /// Number of rounds; each round measures both bare loops and Evenkeel
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Write the result to docs/perf.json, instead of comparing it
    #[arg(long)]
    record: bool,
}

pub fn run(options: &Options) -> Result<()> {
    provision::postgres()?;
    succeed(&mut cargo(&["build", "--release", "--package", "evenkeel"]), BUILD_LIMIT)?;
    let program = workspace::target()?.join("release/evenkeel");
    let mut measured = json!({});
    for store in STORES {
        println!("measuring {store}: {} rounds", options.rounds);
        measured[store] = measure(&program, store, options)?;
    }
    let file = workspace::root().join("docs/perf.json");
    if options.record {
        return Ok(fs::write(file, format!("{measured:#}\n"))?);
    }
    let recorded = fs::read_to_string(&file).with_context(|| format!("cannot read {file:?}"))?;
    let recorded: Value = serde_json::from_str(&recorded).context("docs/perf.json is not JSON")?;
    compare(&recorded, &measured).iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn measure(program: &PathBuf, store: &str, options: &Options) -> Result<Value> {
    let (rounds, seconds) = (options.rounds.to_string(), options.seconds.to_string());
    let arguments = ["--rounds", &rounds, "--seconds", &seconds, "--store", store, "--json"];
    let mut bench = Command::new(program);
    // A round measures three times, and creates a store.
    let round = Duration::from_secs(options.seconds.saturating_mul(3)) + ROUND_LIMIT;
    let limit = round.saturating_mul(u32::try_from(options.rounds).unwrap_or(u32::MAX));
    let output = answer_within(bench.args(["bench", "max"]).args(arguments), limit)?;
    let report: Value = serde_json::from_slice(&output).context("bench printed no JSON")?;
    Ok(report["share"].clone())
}

/// Returns one line per figure, with the change since the recorded figure.
fn compare(recorded: &Value, measured: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for store in STORES {
        for share in SHARES {
            let figure = |from: &Value| from[store][share].as_f64();
            let text = |figure: Option<f64>| figure.map_or("-".into(), |it| format!("{it:.2}"));
            let (before, now) = (figure(recorded), figure(measured));
            let verdict = match before.zip(now).map(|(before, now)| now / before - 1.0) {
                None => "not measured",
                Some(change) if change < -NOISE => "SLOWER",
                Some(change) if change > NOISE => "faster",
                Some(_) => "equal within the noise",
            };
            let (before, now) = (text(before), text(now));
            lines.push(format!("{store:<8} {share:<16} {before} -> {now}  {verdict}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_and_missing_figures_are_reported() {
        let recorded = json!({"postgres": {"of_bare_loop": 0.5, "of_same_promises": 0.5},
                              "sqlite": {"of_bare_loop": 0.5}});
        let measured = json!({"postgres": {"of_bare_loop": 0.4, "of_same_promises": 0.51},
                              "sqlite": {"of_bare_loop": 0.6}});
        let lines = compare(&recorded, &measured);
        let verdict = |nth: usize| lines[nth].split("  ").last().unwrap();
        assert_eq!(lines[0], "postgres of_bare_loop     0.50 -> 0.40  SLOWER");
        assert_eq!(verdict(1), "equal within the noise");
        assert_eq!(verdict(2), "faster");
        assert_eq!(verdict(3), "not measured");
    }
}
