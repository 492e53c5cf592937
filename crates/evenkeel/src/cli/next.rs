//! `evenkeel next`

use clap::Args;
use evenkeel_commands::next_times;
use evenkeel_core::Timestamp;
use serde_json::json;

use super::Context;
use crate::Failure;
use crate::output::{Table, Tone, ago};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel next '@every 30m'
  evenkeel next PT6H --tz America/Toronto -n 3
  evenkeel next R/2026-12-01T00:00:00Z/PT30M --from 2026-12-01T10:00:00Z --json";

/// Which times.
#[derive(Args, Clone)]
pub struct NextArgs {
    /// The schedule: '@every 30m', 30m, PT30M, R/2026-12-01T00:00:00Z/PT30M
    #[arg(value_name = "EXPR")]
    expression: String,
    /// Show local times of this zone
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Begin after this time [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Show so many
    #[arg(short = 'n', value_name = "N", default_value_t = 5)]
    count: usize,
}

pub(super) fn run(context: &Context, args: &NextArgs) -> Result<(), Failure> {
    let now = context.now();
    let from = args.from.unwrap_or(now);
    let times = next_times(&args.expression, &args.tz, from, args.count).map_err(|fault| {
        Failure::usage(fault.to_string()).or_else("`evenkeel next --help` has examples")
    })?;
    if context.output.is_json() {
        return context.output.json(&json!({ "times": times }));
    }
    let mut table = Table::new(context.output, &["UTC", &args.tz.to_uppercase(), "WHEN"]);
    for time in times {
        let utc = short(&time.utc.to_string());
        let cells = [utc, short(&time.local), ago(time.utc, now)];
        table.row(cells.map(|text| (text, Tone::Plain)));
    }
    context.output.line(&table.render())
}

/// Without the microseconds, if there are none.
fn short(time: &str) -> String {
    time.replacen(".000000", "", 1)
}
