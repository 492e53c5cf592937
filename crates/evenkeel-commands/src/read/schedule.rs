//! Reads the schedule of a job in each of its forms.

use evenkeel_core::schedule::{Interval, Once, Periodic, PeriodicError};
use evenkeel_core::{Schedule, Span};
use serde_json::Value;

use super::expression::{ALL_FORMS, ParsedSchedule, read_cron, read_schedule};
use super::fields::Fields;
use super::limits::{PERIOD_MAX, SPAN_MAX, SPAN_MIN};
use super::merge::{add_cooldown, add_max_duration, one_of};
use super::schedule_object;
use super::syntax_error::SyntaxError;
use crate::fault::shown;

/// A schedule, and the name of the field that contains it.
pub(super) type Form = (&'static str, ParsedSchedule);

/// Reads the schedule of a job. Returns `None` if the schedule is invalid. The returned flag is true
/// if the schedule is periodic or comes from `cron_schedule`, so that the retry policy defaults to
/// `deadline`.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<(ParsedSchedule, bool)> {
    let faults_before = fields.faults.count();
    let long = long_form(fields);
    let interval = short_interval(fields);
    let former = form(fields, "schedule_time", read_cron);
    // If a job document has both an interval and `schedule_time`, the interval is used.
    let is_interval =
        |(_, parsed): &Form| matches!(parsed.schedule, Schedule::Interval(_)) && !parsed.as_cron;
    let replaced = interval.is_some() || long.as_ref().is_some_and(is_interval);
    let former = former.filter(|_| !replaced);
    let expression = form(fields, "cron_expression", read_cron);
    let cron = form(fields, "cron_schedule", read_cron);
    let is_cron_wrong = fields.faults.count() > faults_before;
    let max_duration = fields.span("cron_max_schedule_duration", SPAN_MIN..=SPAN_MAX);
    let name = "scheduling_period";
    let period = fields.span(name, SPAN_MIN..=PERIOD_MAX);
    let cooldown = fields.span("cooldown_duration", Span::ZERO..=PERIOD_MAX);
    let periodic = period.and_then(|period| {
        Some((name, periodic(fields, (name, period), ("cooldown_duration", cooldown))?))
    });
    let is_wrong = fields.faults.count() > faults_before;
    let by_deadline = cron.is_some() || periodic.is_some();

    let forms = [long, interval, former, expression, cron, periodic];
    let mut parsed = one_of(fields, forms.into_iter().flatten().collect());
    if let Some(max_duration) = max_duration {
        // If the cron schedule is invalid, its maximum duration is not reported as a second fault.
        if parsed.as_ref().is_some_and(|parsed| parsed.as_cron) || !is_cron_wrong {
            add_max_duration(fields, parsed.as_mut(), max_duration);
        }
    }
    // If the job has the field `scheduling_period`, the cooldown is already part of that schedule.
    if let (Some(cooldown), None, false) = (cooldown, period, is_wrong) {
        add_cooldown(fields, parsed.as_mut(), cooldown);
    }

    let enabled = fields.flag("schedule_enabled");
    if enabled == Some(true) && parsed.is_none() && fields.faults.count() == faults_before {
        let message = "true needs a schedule: give interval_minutes or schedule, or false to run \
                       once, now";
        fields.fault("schedule_enabled", message);
    }
    if fields.faults.count() > faults_before {
        return None;
    }
    let now = || ParsedSchedule::from(Schedule::Once(Once::NOW));
    let parsed = if enabled == Some(false) { now() } else { parsed.unwrap_or_else(now) };
    let by_deadline = by_deadline || parsed.schedule.follows_its_end();
    Some((parsed, by_deadline))
}

fn long_form(fields: &mut Fields<'_>) -> Option<Form> {
    match fields.value("schedule")? {
        Value::String(_) => form(fields, "schedule", read_schedule),
        Value::Object(object) => Some(("schedule", schedule_object::read(fields, object)?)),
        Value::Number(number) => {
            fields.refuse("schedule", format!("{number} needs a unit: write \"{number}m\""))
        }
        other => {
            let message = format!(
                "{} is not a schedule; write an object with a kind, or a text like {ALL_FORMS}",
                shown(other)
            );
            fields.refuse("schedule", message)
        }
    }
}

fn form(
    fields: &mut Fields<'_>,
    name: &'static str,
    read: impl Fn(&str) -> Result<ParsedSchedule, SyntaxError>,
) -> Option<Form> {
    let text = fields.text(name)?;
    Some((name, fields.parse(name, text, read)?))
}

/// Reads the interval in `interval_minutes`, with `interval_type` as its unit.
fn short_interval(fields: &mut Fields<'_>) -> Option<Form> {
    let unit_named = fields.value("interval_type").is_some();
    let unit = fields.word("interval_type", &[("minutes", 60), ("hours", 3600), ("days", 86_400)]);
    let given = fields.value("interval_minutes");
    let Some(number) = fields.number("interval_minutes", 1..=u64::from(u32::MAX)) else {
        if unit_named && given.is_none() {
            fields.fault("interval_type", "has no effect without interval_minutes");
        }
        return None;
    };
    let unit = unit.or((!unit_named).then_some(60))?;
    let span = Span::from_secs(unit).saturating_mul(number);
    let interval = fields.valid("interval_minutes", Interval::new(span, None))?;
    Some(("interval_minutes", Schedule::Interval(interval).into()))
}

/// Builds a periodic schedule. `name` and `cooldown_name` are the names of the fields to which a
/// fault refers.
pub(super) fn periodic(
    fields: &mut Fields<'_>,
    (name, period): (&str, Span),
    (cooldown_name, cooldown): (&str, Option<Span>),
) -> Option<ParsedSchedule> {
    match Periodic::new(period, cooldown) {
        Ok(periodic) => Some(ParsedSchedule {
            open_cooldown: cooldown.is_none(),
            ..Schedule::Periodic(periodic).into()
        }),
        Err(error) => {
            let too_long = matches!(error, PeriodicError::CooldownTooLong { .. });
            fields.refuse(if too_long { cooldown_name } else { name }, error.to_string())
        }
    }
}
