//! When a job runs, in all the ways a document may say it.

use evenkeel_core::schedule::{Interval, Once};
use evenkeel_core::{Schedule, Span, Timestamp};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::expression::{every, read_schedule};
use super::fields::Fields;
use crate::fault::shown;

/// What the schedule of a document must look like, for those who wrote something else.
pub(super) const FORMS: &str = "write {\"kind\": \"interval\", \"every\": \"30m\"}, \
    {\"kind\": \"once\"}, \"@every 30m\", \"PT30M\" or \"R/2026-12-01T00:00:00Z/PT30M\"";

/// The schedule; `None` if something is wrong with it.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Schedule> {
    let faults_before = fields.faults.count();
    let long = match fields.value("schedule") {
        None => None,
        Some(Value::String(text)) => match read_schedule(text) {
            Ok(schedule) => Some(schedule),
            Err(message) => {
                fields.fault("schedule", message);
                None
            }
        },
        Some(Value::Object(object)) => from_object(fields, object),
        Some(other) => {
            fields.fault("schedule", format!("{} is not a schedule; {FORMS}", shown(other)));
            None
        }
    };
    let short = short_interval(fields);
    let enabled = fields.flag("schedule_enabled");
    if let (Some(long), Some(short)) = (&long, short)
        && !matches!(long, Schedule::Interval(interval) if interval.every() == short.every())
    {
        let message = format!(
            "contradicts the schedule: it says every {}; leave one of them out",
            short.every(),
        );
        fields.fault("interval_minutes", message);
    }
    let given = long.or(short.map(Schedule::Interval));
    if enabled == Some(true) && given.is_none() && fields.faults.count() == faults_before {
        let message = "true needs a schedule: give interval_minutes or schedule, or false to run \
                       once, now";
        fields.fault("schedule_enabled", message);
    }
    if fields.faults.count() > faults_before {
        return None;
    }
    let now = Schedule::Once(Once { at: None });
    Some(if enabled == Some(false) { now } else { given.unwrap_or(now) })
}

fn from_object(fields: &mut Fields<'_>, object: &Map<String, Value>) -> Option<Schedule> {
    let faults = std::mem::take(&mut fields.faults);
    let mut inner = Fields::new(object, "schedule.", faults);
    let schedule = kinds(&mut inner);
    // With an unknown kind, there is no telling what the other fields should be.
    fields.faults = match schedule {
        Err(()) => inner.faults,
        Ok(_) => inner.finish(|_| None),
    };
    schedule.ok().flatten()
}

fn kinds(fields: &mut Fields<'_>) -> Result<Option<Schedule>, ()> {
    let Some(value) = fields.value("kind") else {
        fields.fault("kind", format!("is missing; {FORMS}"));
        return Err(());
    };
    match value.as_str() {
        Some("once") => {
            let at = moment(fields, "at");
            Ok(at.ok().map(|at| Schedule::Once(Once { at })))
        }
        Some("interval") => {
            let anchor = moment(fields, "anchor");
            let Some(text) = fields.text("every") else {
                if fields.value("every").is_none() {
                    fields.fault("every", "is missing; write it like 30m, 1h 30m or PT30M");
                }
                return Ok(None);
            };
            let Ok(anchor) = anchor else { return Ok(None) };
            let interval = every(text)
                .and_then(|span| Interval::new(span, anchor).map_err(|error| error.to_string()));
            Ok(interval
                .map_err(|message| fields.fault("every", message))
                .ok()
                .map(Schedule::Interval))
        }
        Some("cron" | "periodic") => {
            let message =
                format!("{} is not supported yet; the kinds are interval and once", shown(value));
            fields.fault("kind", message);
            Err(())
        }
        _ => {
            let message = format!("{} is not one of interval, once", shown(value));
            fields.fault("kind", message);
            Err(())
        }
    }
}

fn moment(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<Timestamp>, ()> {
    let Some(value) = fields.value(name) else { return Ok(None) };
    let text = fields.text(name).ok_or(())?;
    match text.parse() {
        Ok(moment) => Ok(Some(moment)),
        Err(error) => {
            fields.fault(name, format!("{} is {error}", shown(value)));
            Err(())
        }
    }
}

/// `interval_minutes`, which `interval_type` says the unit of.
fn short_interval(fields: &mut Fields<'_>) -> Option<Interval> {
    let unit_named = fields.value("interval_type").is_some();
    let unit = fields.word("interval_type", &[("minutes", 60), ("hours", 3600), ("days", 86_400)]);
    let given = fields.value("interval_minutes");
    let Some(number) = fields.number("interval_minutes", 1..=u64::from(u32::MAX)) else {
        if unit_named && given.is_none() {
            fields.fault("interval_type", "says nothing without interval_minutes");
        }
        return None;
    };
    let unit = unit.or((!unit_named).then_some(60))?;
    let span = Span::from_secs(unit).saturating_mul(number);
    Interval::new(span, None)
        .map_err(|error| fields.fault("interval_minutes", error.to_string()))
        .ok()
}

/// The zone a job's times are meant in.
pub(super) fn timezone(fields: &mut Fields<'_>) -> String {
    let Some(text) = fields.text("timezone") else { return "UTC".into() };
    match zone(text) {
        Ok(zone) => zone.iana_name().unwrap_or(text).into(),
        Err(message) => {
            fields.fault("timezone", message);
            "UTC".into()
        }
    }
}

/// The zone called `name`.
pub(crate) fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).ok().filter(|zone| !zone.is_unknown()).ok_or_else(|| {
        format!("{} is not a time zone; write it like America/Toronto or UTC", shown(&name.into()),)
    })
}
