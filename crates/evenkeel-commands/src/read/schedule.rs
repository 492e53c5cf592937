//! When a job runs, in all the ways a document may say it.

use evenkeel_core::schedule::{CronSchedule, Interval, Once, Periodic};
use evenkeel_core::{Schedule, Span};
use serde_json::Value;

use super::expression::{ALL_FORMS, Said, read_cron, read_schedule};
use super::fields::Fields;
use super::kinds;
use super::limits::{SPAN_MAX, SPAN_MIN};
use super::misread::Misread;
use crate::fault::shown;

/// What was said, and by which fields.
pub(super) struct Read {
    /// The rule.
    pub said: Said,
    /// Was it said as in the document about deadlines, which has its own rule for retries?
    pub by_deadline: bool,
}

/// A schedule and the field that says it.
type Form = (&'static str, Said);

/// The schedule; `None` if something is wrong with it.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Read> {
    let faults_before = fields.faults.count();
    let long = long_form(fields);
    let interval = short_interval(fields);
    let former = cron_form(fields, "schedule_time");
    // An interval takes the place of the cron column that came before it.
    let former = former.filter(|_| interval.is_none());
    let expression = cron_form(fields, "cron_expression");
    let cron = cron_form(fields, "cron_schedule");
    let max_duration = fields.span("cron_max_schedule_duration", SPAN_MIN..=SPAN_MAX);
    let period = fields.span("scheduling_period", SPAN_MIN..=SPAN_MAX);
    let cooldown = fields.span("cooldown_duration", Span::ZERO..=SPAN_MAX);
    let periodic = period.and_then(|period| short_periodic(fields, period, cooldown));
    let by_deadline = cron.is_some() || periodic.is_some();

    let forms = [long, interval, former, expression, cron, periodic];
    let mut said = one_of(fields, forms.into_iter().flatten().collect());
    if let Some(max_duration) = max_duration {
        add_max_duration(fields, said.as_mut(), max_duration);
    }
    if let (Some(cooldown), None) = (cooldown, period) {
        add_cooldown(fields, said.as_mut(), cooldown);
    }

    let enabled = fields.flag("schedule_enabled");
    if enabled == Some(true) && said.is_none() && fields.faults.count() == faults_before {
        let message = "true needs a schedule: give interval_minutes or schedule, or false to run \
                       once, now";
        fields.fault("schedule_enabled", message);
    }
    if fields.faults.count() > faults_before {
        return None;
    }
    let now = || Said::from(Schedule::Once(Once::NOW));
    let said = if enabled == Some(false) { now() } else { said.unwrap_or_else(now) };
    let by_deadline = by_deadline || said.schedule.follows_its_end();
    Some(Read { said, by_deadline })
}

fn long_form(fields: &mut Fields<'_>) -> Option<Form> {
    let schedule = match fields.value("schedule")? {
        Value::String(_) => return text_form(fields, "schedule"),
        Value::Object(object) => kinds::read(fields, object)?,
        other => {
            let message = format!(
                "{} is not a schedule; write an object with a kind, or a text like {ALL_FORMS}",
                shown(other)
            );
            fields.fault("schedule", message);
            return None;
        }
    };
    Some(("schedule", schedule.into()))
}

/// A schedule on one line, of any form.
fn text_form(fields: &mut Fields<'_>, name: &'static str) -> Option<Form> {
    form(fields, name, read_schedule)
}

/// A cron expression, or `@every 30m`.
fn cron_form(fields: &mut Fields<'_>, name: &'static str) -> Option<Form> {
    form(fields, name, |text| read_cron(text).map(Said::from))
}

fn form(
    fields: &mut Fields<'_>,
    name: &'static str,
    read: impl Fn(&str) -> Result<Said, Misread>,
) -> Option<Form> {
    let text = fields.text(name)?;
    match read(text) {
        Ok(said) => Some((name, said)),
        Err(misread) => {
            fields.misread(name, text, misread);
            None
        }
    }
}

/// `interval_minutes`, which `interval_type` says the unit of.
fn short_interval(fields: &mut Fields<'_>) -> Option<Form> {
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
    match Interval::new(span, None) {
        Ok(interval) => Some(("interval_minutes", Schedule::Interval(interval).into())),
        Err(error) => {
            fields.fault("interval_minutes", error.to_string());
            None
        }
    }
}

fn short_periodic(fields: &mut Fields<'_>, period: Span, cooldown: Option<Span>) -> Option<Form> {
    match Periodic::new(period, cooldown) {
        Ok(periodic) => Some(("scheduling_period", Schedule::Periodic(periodic).into())),
        Err(error) => {
            fields.fault("scheduling_period", error.to_string());
            None
        }
    }
}

/// The one schedule that all forms say; what only one of them adds is kept.
fn one_of(fields: &mut Fields<'_>, forms: Vec<Form>) -> Option<Said> {
    let mut forms = forms.into_iter();
    let (first, mut said) = forms.next()?;
    for (name, other) in forms {
        match both(&said, &other) {
            Some(joined) => said = joined,
            None => {
                let message = format!("contradicts {first}; leave one of them out");
                fields.fault(name, message);
            }
        }
    }
    Some(said)
}

/// What both say, if it is the same.
fn both(one: &Said, other: &Said) -> Option<Said> {
    let schedule = match (&one.schedule, &other.schedule) {
        (Schedule::Interval(a), Schedule::Interval(b)) if a.every() == b.every() => {
            let anchor = either(a.anchor(), b.anchor())?;
            let tolerance = either(a.stated_tolerance(), b.stated_tolerance())?;
            let interval = Interval::new(a.every(), anchor).ok()?.with_tolerance(tolerance);
            Schedule::Interval(interval)
        }
        (Schedule::Cron(a), Schedule::Cron(b))
            if same_words(a.cron.expression(), b.cron.expression()) =>
        {
            let max_duration = either(a.max_duration, b.max_duration)?;
            Schedule::Cron(CronSchedule { cron: a.cron.clone(), max_duration })
        }
        (a, b) if a == b => a.clone(),
        _ => return None,
    };
    Some(Said { schedule, times: either(one.times, other.times)? })
}

/// What one of them says, or both alike; the outer `None` if they differ.
fn either<T: Copy + PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}

fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

fn add_max_duration(fields: &mut Fields<'_>, said: Option<&mut Said>, limit: Span) {
    let name = "cron_max_schedule_duration";
    match said.map(|said| &mut said.schedule) {
        Some(Schedule::Cron(by)) => match either(by.max_duration, Some(limit)) {
            Some(joined) => by.max_duration = joined,
            None => fields.fault(name, "contradicts schedule.max_duration; leave one of them out"),
        },
        Some(_) | None => fields.fault(name, "says nothing without a cron schedule"),
    }
}

fn add_cooldown(fields: &mut Fields<'_>, said: Option<&mut Said>, cooldown: Span) {
    let name = "cooldown_duration";
    match said.map(|said| &mut said.schedule) {
        Some(Schedule::Periodic(periodic)) => {
            if periodic.cooldown() != cooldown {
                fields.fault(name, "contradicts schedule.cooldown; leave one of them out");
            }
        }
        Some(_) | None => fields.fault(name, "says nothing without scheduling_period"),
    }
}
