//! Reads the canonical form of a schedule: a JSON object with a `kind`.

use evenkeel_core::schedule::Once;
use evenkeel_core::{Schedule, Span};
use serde_json::Value;

use super::expression::{ParsedSchedule, at_intervals, read_cron};
use super::fields::Fields;
use super::length::{length, span};
use super::limits::{PERIOD_MAX, SPAN_MAX, SPAN_MIN};
use super::merge::with_limit;
use super::schedule;
use crate::Object;
use crate::fault::shown;

const FORMS: &str = "write {\"kind\": \"interval\", \"every\": \"30m\"}, \
    {\"kind\": \"cron\", \"expression\": \"0 9 * * 1-5\"}, \
    {\"kind\": \"periodic\", \"period\": \"24h\"} or {\"kind\": \"once\"}";

/// Reads the JSON object `schedule`. Returns `None` if the schedule object is invalid.
pub(super) fn read(fields: &mut Fields<'_>, object: &Object) -> Option<ParsedSchedule> {
    let mut inner = Fields::new(object, "schedule.", std::mem::take(&mut fields.faults));
    let kind = inner.value("kind");
    let schedule = match kind.and_then(Value::as_str) {
        Some("once") => Some(once(&mut inner)),
        Some("interval") => interval(&mut inner),
        Some("cron") => by_cron(&mut inner),
        Some("periodic") => periodic(&mut inner),
        _ => {
            let wrong = kind.map_or("is missing".into(), |kind| {
                format!("{} is not one of interval, cron, periodic, once", shown(kind))
            });
            inner.fault("kind", format!("{wrong}; {FORMS}"));
            // The allowed fields depend on the schedule's `kind`, so they are not checked if the
            // kind is unknown.
            fields.faults = inner.faults;
            return None;
        }
    };
    fields.faults = inner.finish(|_| None);
    schedule
}

fn once(fields: &mut Fields<'_>) -> ParsedSchedule {
    let at = fields.moment("at");
    let tolerance = fields.span("tolerance", Span::ZERO..=SPAN_MAX);
    Schedule::Once(Once { at, tolerance }).into()
}

fn interval(fields: &mut Fields<'_>) -> Option<ParsedSchedule> {
    let anchor = fields.moment("anchor");
    let tolerance = fields.span("tolerance", Span::ZERO..=SPAN_MAX);
    fields.require("every", "write it like 30m, 1h 30m, PT30M or P1M");
    let text = fields.length("every")?;
    let read = |text: &str| at_intervals(length(text)?, anchor, tolerance);
    fields.parse("every", text, read).map(ParsedSchedule::from)
}

fn by_cron(fields: &mut Fields<'_>) -> Option<ParsedSchedule> {
    let max_duration = fields.span("max_duration", SPAN_MIN..=SPAN_MAX);
    fields.require("expression", "write it like 0 9 * * 1-5 or @daily");
    let text = fields.text("expression")?;
    let parsed = fields.parse("expression", text, read_cron)?;
    match max_duration {
        Some(limit) => with_limit(&parsed, limit),
        None => Some(parsed),
    }
}

fn periodic(fields: &mut Fields<'_>) -> Option<ParsedSchedule> {
    let cooldown = fields.span("cooldown", Span::ZERO..=PERIOD_MAX);
    fields.require("period", "write it like 24h");
    let text = fields.length("period")?;
    let period = fields.parse("period", text, span)?;
    schedule::periodic(fields, ("period", period), ("cooldown", cooldown))
}
