//! Merges several fields of one document that describe the same schedule.

use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Interval, Periodic};
use evenkeel_core::{Schedule, Span};

use super::expression::ParsedSchedule;
use super::fields::Fields;
use super::schedule::Form;

/// Merges the schedules from several fields of a job into one. Refuses schedules that contradict
/// each other.
pub(super) fn one_of(fields: &mut Fields<'_>, forms: Vec<Form>) -> Option<ParsedSchedule> {
    let mut forms = forms.into_iter();
    let (first, mut parsed) = forms.next()?;
    for (name, other) in forms {
        match both(&parsed, &other) {
            Some(joined) => parsed = joined,
            None => {
                let message = format!("contradicts {first}; leave one of them out");
                fields.fault(name, message);
            }
        }
    }
    Some(parsed)
}

/// Merges the schedules from two fields. Returns `None` if the two schedules contradict each other.
fn both(one: &ParsedSchedule, other: &ParsedSchedule) -> Option<ParsedSchedule> {
    let mut open_cooldown = false;
    let schedule = match (&one.schedule, &other.schedule) {
        (Schedule::Interval(a), Schedule::Interval(b)) if a.every() == b.every() => {
            let anchor = either(a.anchor(), b.anchor())?;
            let tolerance = either(a.stated_tolerance(), b.stated_tolerance())?;
            let interval = Interval::new(a.every(), anchor).ok()?.with_tolerance(tolerance);
            Schedule::Interval(interval)
        }
        (Schedule::Calendar(a), Schedule::Calendar(b)) if a.every == b.every => {
            Schedule::Calendar(CalendarInterval {
                every: a.every,
                anchor: either(a.anchor, b.anchor)?,
                tolerance: either(a.tolerance, b.tolerance)?,
            })
        }
        (Schedule::Cron(a), Schedule::Cron(b))
            if same_words(a.cron.expression(), b.cron.expression()) =>
        {
            let max_duration = either(a.max_duration, b.max_duration)?;
            Schedule::Cron(CronSchedule { cron: a.cron.clone(), max_duration })
        }
        (Schedule::Periodic(a), Schedule::Periodic(b)) if a.period() == b.period() => {
            let cooldown = either(stated_cooldown(one, a), stated_cooldown(other, b))?;
            open_cooldown = cooldown.is_none();
            Schedule::Periodic(Periodic::new(a.period(), cooldown).ok()?)
        }
        (a, b) if a == b => a.clone(),
        _ => return None,
    };
    Some(ParsedSchedule {
        schedule,
        times: either(one.times, other.times)?,
        as_cron: one.as_cron || other.as_cron,
        open_cooldown,
    })
}

fn stated_cooldown(parsed: &ParsedSchedule, periodic: &Periodic) -> Option<Span> {
    (!parsed.open_cooldown).then(|| periodic.cooldown())
}

/// Merges two optional values into one. Returns `None` if both values are given and differ.
fn either<T: Copy + PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    }
}

fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// Adds the rule that a run must finish within `limit` after its scheduled time. Returns `None` if
/// the schedule already has another such limit, or is of a kind that cannot have a limit.
pub(super) fn with_limit(parsed: &ParsedSchedule, limit: Span) -> Option<ParsedSchedule> {
    let limit = Some(limit);
    let schedule = match &parsed.schedule {
        Schedule::Cron(by) => Schedule::Cron(CronSchedule {
            max_duration: either(by.max_duration, limit)?,
            ..by.clone()
        }),
        Schedule::Interval(every) => {
            Schedule::Interval(every.with_tolerance(either(every.stated_tolerance(), limit)?))
        }
        Schedule::Calendar(every) => Schedule::Calendar(CalendarInterval {
            tolerance: either(every.tolerance, limit)?,
            ..*every
        }),
        Schedule::Once(_) | Schedule::Periodic(_) => return None,
    };
    Some(ParsedSchedule { schedule, ..parsed.clone() })
}

pub(super) fn add_max_duration(
    fields: &mut Fields<'_>,
    parsed: Option<&mut ParsedSchedule>,
    limit: Span,
) {
    let name = "cron_max_schedule_duration";
    match parsed.filter(|parsed| parsed.as_cron) {
        Some(parsed) => match with_limit(parsed, limit) {
            Some(joined) => *parsed = joined,
            None => fields.fault(name, "contradicts schedule.max_duration; leave one of them out"),
        },
        None => fields.fault(name, "has no effect without a cron schedule"),
    }
}

/// Adds the value of `cooldown_duration` to a periodic schedule that does not come from
/// `scheduling_period`.
pub(super) fn add_cooldown(
    fields: &mut Fields<'_>,
    parsed: Option<&mut ParsedSchedule>,
    cooldown: Span,
) {
    let name = "cooldown_duration";
    let Some(parsed) = parsed else {
        return fields.fault(name, "has no effect without scheduling_period");
    };
    match parsed.schedule {
        Schedule::Periodic(periodic) if parsed.open_cooldown => {
            match Periodic::new(periodic.period(), Some(cooldown)) {
                Ok(periodic) => *parsed = Schedule::Periodic(periodic).into(),
                Err(error) => fields.fault(name, error.to_string()),
            }
        }
        Schedule::Periodic(periodic) if periodic.cooldown() == cooldown => {}
        Schedule::Periodic(_) => {
            fields.fault(name, "contradicts schedule.cooldown; leave one of them out");
        }
        _ => fields.fault(name, "has no effect without scheduling_period"),
    }
}
