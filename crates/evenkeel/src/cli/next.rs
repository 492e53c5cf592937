//! `evenkeel next`

use clap::Args;
use evenkeel_commands::{Fault, NEXT_TIMES_MAX, Preview, preview};
use evenkeel_core::Timestamp;
use serde_json::{Map, Value, json};

use super::Context;
use super::job::{put, put_same};
use crate::output::{Table, Tone, ago};
use crate::{Failure, Result};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel next '0 9 * * 1-5' --tz America/Toronto
  evenkeel next '*/10 0-9 8-18 * * MON-FRI' -n 20
  evenkeel next '@every 30m'
  evenkeel next '30 2 * * *' --tz Europe/Berlin --dst-gap skip --from 2026-03-28T12:00:00Z
  evenkeel next P1M --from 2026-01-31T09:00:00Z
  evenkeel next R5/2026-12-01T00:00:00Z/PT30M --from 2026-11-30T00:00:00Z --json
  evenkeel next '{\"kind\": \"periodic\", \"period\": \"24h\"}'

An expression has 5 fields, or 6 with seconds first:
  minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC,
  day of the week 0-7 or SUN-SAT; with * , - / ? and L W # and H
or is @yearly, @monthly, @weekly, @daily, @hourly, @every TIME.";

#[derive(Args, Clone)]
pub struct NextArgs {
    /// Schedule: '0 9 * * *', @daily, '@every 30m', 30m, PT30M, P1M, R/START/PT30M, or a JSON
    /// object with a kind
    #[arg(value_name = "EXPR")]
    expression: String,
    /// Time zone
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Show run times after this time [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Number of times
    #[arg(short = 'n', value_name = "N", default_value_t = 5)]
    count: u64,
    /// What to do with a run whose local time a clock change skips: shift or skip [default: shift]
    #[arg(long, value_name = "POLICY")]
    dst_gap: Option<String>,
    /// When to run if a clock change repeats the local time: first, last or both [default: first]
    #[arg(long, value_name = "POLICY")]
    dst_overlap: Option<String>,
}

impl NextArgs {
    fn document(&self) -> Value {
        // Text that is not a JSON object is parsed as a schedule expression.
        let object = serde_json::from_str::<Value>(&self.expression).ok();
        let object = object.filter(Value::is_object);
        let mut document = Map::new();
        let it = &mut document;
        put(it, "schedule", object.or_else(|| Some(self.expression.clone().into())));
        put(it, "timezone", Some(&self.tz));
        put(it, "count", Some(self.count));
        put_same!(it, self, from, dst_gap, dst_overlap);
        Value::Object(document)
    }
}

pub(super) fn run(context: &Context, args: &NextArgs) -> Result {
    let now = context.now();
    let document = args.document();
    let preview =
        preview(&document, now, NEXT_TIMES_MAX).map_err(|faults| refusal(&document, &faults))?;
    let json = json!({
        "times": preview.times,
        "description": preview.description,
        "kind": preview.kind,
        "timezone": preview.timezone.name(),
        "exact_times": preview.exact_times,
    });
    context.output.json_or_text(&json, &as_text(context, &preview, now))
}

fn as_text(context: &Context, preview: &Preview, now: Timestamp) -> String {
    let mut text = format!("{}\n\n", preview.description);
    if preview.times.is_empty() {
        text.push_str("The schedule has no further times.");
        return text;
    }
    // If the schedule's time zone is UTC, a column of local times would repeat the UTC column.
    let local = !preview.timezone.is_utc();
    let moved = preview.times.iter().any(|time| time.moved_by.is_some());
    let zone = preview.timezone.name().to_uppercase();
    let headings = [("UTC", true), (&zone, local), ("WHEN", true), ("MOVED BY", moved)];
    let headings: Vec<&str> = headings.into_iter().filter(|it| it.1).map(|it| it.0).collect();
    let mut table = Table::new(context.output, &headings);
    for time in &preview.times {
        let cells = [
            (short(&time.utc.to_string()), Tone::Plain, true),
            (short(&time.local), Tone::Plain, local),
            (ago(time.utc, now), Tone::Plain, true),
            (time.moved_by.unwrap_or_default().replace('_', " "), Tone::Busy, moved),
        ];
        table.row(cells.into_iter().filter(|it| it.2).map(|(text, tone, _)| (text, tone)));
    }
    text.push_str(&table.render());
    if !preview.exact_times {
        text.push_str("\nThe times of a job differ: ");
        text.push_str(match preview.kind {
            "periodic" => "it starts as soon as possible; these are the latest times.\n",
            "interval" => {
                "the server chooses the first time by load, within one interval; these are \
                 the latest times.\n"
            }
            _ => "H is a different number for each job.\n",
        });
    }
    text
}

/// Returns the error message with a caret under the invalid character.
fn refusal(document: &Value, faults: &[Fault]) -> Failure {
    let Some(first) = faults.first() else { return Failure::usage("this is not a schedule") };
    let failure = Failure::usage(first.to_string()).or_else("`evenkeel next --help` has examples");
    point_at(failure, document, &first.field, first.position)
}

/// Adds the invalid field of `document` to the error message, if the position of the error in the
/// field is known.
pub(super) fn point_at(
    failure: Failure,
    document: &Value,
    field: &str,
    position: Option<usize>,
) -> Failure {
    let text = field.split('.').try_fold(document, |value, name| value.get(name));
    match (text.and_then(Value::as_str), position) {
        (Some(text), Some(position)) => failure.at(text, position),
        _ => failure,
    }
}

/// Omits microseconds that are zero.
fn short(time: &str) -> String {
    time.replacen(".000000", "", 1)
}
