//! Several forms that say one schedule.

use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Interval, Periodic};
use evenkeel_core::{Schedule, Span};

use super::expression::Said;
use super::fields::Fields;
use super::schedule::Form;

/// The one schedule that all forms say; what only one of them adds is kept.
pub(super) fn one_of(fields: &mut Fields<'_>, forms: Vec<Form>) -> Option<Said> {
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
    Some(Said {
        schedule,
        times: either(one.times, other.times)?,
        as_cron: one.as_cron || other.as_cron,
        open_cooldown,
    })
}

fn stated_cooldown(said: &Said, periodic: &Periodic) -> Option<Span> {
    (!said.open_cooldown).then(|| periodic.cooldown())
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

/// The same, whose runs must be over `limit` after their time; `None` if it says otherwise, or
/// knows no such limit.
pub(super) fn with_limit(said: &Said, limit: Span) -> Option<Said> {
    let limit = Some(limit);
    let schedule = match &said.schedule {
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
    Some(Said { schedule, ..said.clone() })
}

/// Adds what `cron_max_schedule_duration` says.
pub(super) fn add_max_duration(fields: &mut Fields<'_>, said: Option<&mut Said>, limit: Span) {
    let name = "cron_max_schedule_duration";
    match said.filter(|said| said.as_cron) {
        Some(said) => match with_limit(said, limit) {
            Some(joined) => *said = joined,
            None => fields.fault(name, "contradicts schedule.max_duration; leave one of them out"),
        },
        None => fields.fault(name, "says nothing without a cron schedule"),
    }
}

/// Adds what `cooldown_duration` says, if `scheduling_period` was not there to be read with it.
pub(super) fn add_cooldown(fields: &mut Fields<'_>, said: Option<&mut Said>, cooldown: Span) {
    let name = "cooldown_duration";
    let Some(said) = said else {
        return fields.fault(name, "says nothing without scheduling_period");
    };
    match said.schedule {
        Schedule::Periodic(periodic) if said.open_cooldown => {
            match Periodic::new(periodic.period(), Some(cooldown)) {
                Ok(periodic) => *said = Schedule::Periodic(periodic).into(),
                Err(error) => fields.fault(name, error.to_string()),
            }
        }
        Schedule::Periodic(periodic) if periodic.cooldown() == cooldown => {}
        Schedule::Periodic(_) => {
            fields.fault(name, "contradicts schedule.cooldown; leave one of them out");
        }
        _ => fields.fault(name, "says nothing without scheduling_period"),
    }
}
