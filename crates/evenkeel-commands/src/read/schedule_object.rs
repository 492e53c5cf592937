//! Reads the canonical form of a schedule: a JSON object with a `kind`.

use evenkeel_core::schedule::{Once, Periodic, PeriodicError};
use evenkeel_core::{Schedule, Span};
use serde_json::{Map, Value};

use super::expression::{ParsedSchedule, at_intervals, read_cron};
use super::fields::Fields;
use super::length::{length, span};
use super::limits::{PERIOD_MAX, SPAN_MAX, SPAN_MIN};
use super::merge::with_limit;
use crate::fault::shown;

const FORMS: &str = "write {\"kind\": \"interval\", \"every\": \"30m\"}, \
    {\"kind\": \"cron\", \"expression\": \"0 9 * * 1-5\"}, \
    {\"kind\": \"periodic\", \"period\": \"24h\"} or {\"kind\": \"once\"}";

/// Reads the JSON object `schedule`. Returns `None` if the object is invalid.
pub(super) fn read(fields: &mut Fields<'_>, object: &Map<String, Value>) -> Option<ParsedSchedule> {
    let faults = std::mem::take(&mut fields.faults);
    let mut inner = Fields::new(object, "schedule.", faults);
    let schedule = kind(&mut inner);
    // The other fields depend on the kind, so they are not checked if the kind is unknown.
    fields.faults = match schedule {
        Err(UnknownKind) => inner.faults,
        Ok(_) => inner.finish(|_| None),
    };
    schedule.ok().flatten()
}

struct UnknownKind;

fn kind(fields: &mut Fields<'_>) -> Result<Option<ParsedSchedule>, UnknownKind> {
    let Some(value) = fields.value("kind") else {
        fields.fault("kind", format!("is missing; {FORMS}"));
        return Err(UnknownKind);
    };
    match value.as_str() {
        Some("once") => Ok(once(fields).map(ParsedSchedule::from)),
        Some("interval") => Ok(interval(fields).map(ParsedSchedule::from)),
        Some("cron") => Ok(by_cron(fields)),
        Some("periodic") => Ok(periodic(fields)),
        _ => {
            let shown = shown(value);
            fields.fault(
                "kind",
                format!("{shown} is not one of interval, cron, periodic, once; {FORMS}"),
            );
            Err(UnknownKind)
        }
    }
}

fn once(fields: &mut Fields<'_>) -> Option<Schedule> {
    let at = fields.moment("at");
    let tolerance = fields.span("tolerance", Span::ZERO..=SPAN_MAX);
    Some(Schedule::Once(Once { at, tolerance }))
}

fn interval(fields: &mut Fields<'_>) -> Option<Schedule> {
    let anchor = fields.moment("anchor");
    let stated = fields.span("tolerance", Span::ZERO..=SPAN_MAX);
    missing(fields, "every", "write it like 30m, 1h 30m, PT30M or P1M");
    let text = fields.length("every")?;
    match length(text).and_then(|length| at_intervals(length, anchor)) {
        Ok(Schedule::Interval(every)) => Some(Schedule::Interval(every.with_tolerance(stated))),
        Ok(Schedule::Calendar(mut every)) => {
            every.tolerance = stated;
            Some(Schedule::Calendar(every))
        }
        Ok(other) => Some(other),
        Err(error) => {
            fields.syntax_error("every", text, error);
            None
        }
    }
}

fn by_cron(fields: &mut Fields<'_>) -> Option<ParsedSchedule> {
    let max_duration = fields.span("max_duration", SPAN_MIN..=SPAN_MAX);
    missing(fields, "expression", "write it like 0 9 * * 1-5 or @daily");
    let text = fields.text("expression")?;
    match read_cron(text) {
        Ok(parsed) => match max_duration {
            Some(limit) => with_limit(&parsed, limit),
            None => Some(parsed),
        },
        Err(error) => {
            fields.syntax_error("expression", text, error);
            None
        }
    }
}

fn periodic(fields: &mut Fields<'_>) -> Option<ParsedSchedule> {
    let cooldown = fields.span("cooldown", Span::ZERO..=PERIOD_MAX);
    missing(fields, "period", "write it like 24h");
    let text = fields.length("period")?;
    let period = span(text).map_err(|error| fields.syntax_error("period", text, error)).ok()?;
    match Periodic::new(period, cooldown) {
        Ok(periodic) => Some(ParsedSchedule {
            open_cooldown: cooldown.is_none(),
            ..Schedule::Periodic(periodic).into()
        }),
        Err(error) => {
            let too_long = matches!(error, PeriodicError::CooldownTooLong { .. });
            fields.fault(if too_long { "cooldown" } else { "period" }, error.to_string());
            None
        }
    }
}

/// Reports a required field that is missing.
fn missing(fields: &mut Fields<'_>, name: &'static str, right: &str) {
    if fields.value(name).is_none() {
        fields.fault(name, format!("is missing; {right}"));
    }
}
