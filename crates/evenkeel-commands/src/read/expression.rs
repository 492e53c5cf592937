//! Schedules on one line.

use evenkeel_core::schedule::Interval;
use evenkeel_core::{Schedule, Span, Timestamp};

use super::schedule::FORMS;
use crate::fault::shown;

/// Reads a schedule on one line: `@every 30m`, `30m`, `PT30M`, `R/2026-12-01T00:00:00Z/PT30M`. The
/// error says what is wrong and what would be right.
pub fn read_schedule(text: &str) -> Result<Schedule, String> {
    let text = text.trim();
    let interval = if let Some(span) = text.strip_prefix("@every") {
        Interval::new(every(span)?, None)
    } else if text.starts_with('@') {
        return Err(not_yet(text));
    } else if let Some(repetition) = text.strip_prefix('R') {
        let (span, anchor) = repeating(text, repetition)?;
        Interval::new(span, anchor)
    } else if text.split_whitespace().count() >= 5 {
        return Err(not_yet(text));
    } else {
        Interval::new(every(text)?, None)
    };
    interval.map(Schedule::Interval).map_err(|error| error.to_string())
}

/// Reads the time between two runs.
pub(super) fn every(text: &str) -> Result<Span, String> {
    text.parse::<Span>().map_err(|error| {
        if text.trim().starts_with('P') && text.parse::<jiff::Span>().is_ok() {
            // A calendar day is not always 24 hours, so it must not be read as if it were.
            format!(
                "{} has calendar units, which are not supported yet; write days as 24h and weeks \
                 as 168h",
                shown(&text.into()),
            )
        } else {
            format!("{} is {error}", shown(&text.into()))
        }
    })
}

/// ISO 8601: `R/start/duration`, or without the start.
fn repeating(text: &str, repetition: &str) -> Result<(Span, Option<Timestamp>), String> {
    let parts: Vec<_> = repetition.split('/').collect();
    match parts[..] {
        ["", span] => Ok((every(span)?, None)),
        ["", start, span] => {
            let start = start
                .parse()
                .map_err(|error| format!("the start of {} is {error}", shown(&text.into())))?;
            Ok((every(span)?, Some(start)))
        }
        [count, ..] if !count.is_empty() && count.chars().all(|c| c.is_ascii_digit()) => {
            Err(format!(
                "{} has a number of repetitions, which is not supported yet; write R/… without it",
                shown(&text.into()),
            ))
        }
        _ => Err(format!("{} is not a schedule; {FORMS}", shown(&text.into()))),
    }
}

fn not_yet(text: &str) -> String {
    format!(
        "{} is a cron expression, which is not supported yet; the kinds are interval and once: \
         {FORMS}",
        shown(&text.into()),
    )
}
