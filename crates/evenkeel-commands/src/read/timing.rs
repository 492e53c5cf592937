//! Reads the fields that define when a job runs and when it must not run. Jobs and schedule
//! previews share these fields.

use evenkeel_core::blackout::LocalHours;
use evenkeel_core::job::Bounds;
use evenkeel_core::schedule::{Dst, Once, Overlap};
use evenkeel_core::{Definition, Schedule, Timestamp, Zone};

use super::expression::ParsedSchedule;
use super::fields::Fields;
use super::{hours, job_fields, schedule};
use crate::fault::shown;

/// When a job runs and when it must not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// Definition of a job with this schedule and without an executor.
    pub definition: Definition,
    /// See [`JobSpec::exact`](super::JobSpec::exact).
    pub exact: Option<bool>,
    /// True if the schedule is periodic or comes from `cron_schedule`, so that the retry policy
    /// defaults to `deadline`.
    pub by_deadline: bool,
}

/// Reads the schedule and all fields that depend on it. Returns `None` if the schedule is invalid.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Timing> {
    let faults_before = fields.faults.count();
    let parsed = schedule::read(fields);
    let mut job = Definition::noop(Schedule::Once(Once::NOW));
    job.timezone = timezone(fields);
    job_fields::read(job_fields::TIMES, fields, &mut job);
    let exact = fields.flag("exact");
    job.blackout_periods = hours::blackouts(fields);
    job.prefer_window = hours::preferred(fields, &job.blackout_periods);
    let schedule::Read { parsed, by_deadline } = parsed?;
    check_placement(fields, &parsed.schedule, job.bounds, exact, job.prefer_window);
    check_effects(fields, &parsed.schedule, &job);
    if job.dst.overlap == Overlap::Both && matches!(parsed.schedule, Schedule::Calendar(_)) {
        let message = "both is for cron schedules: days of the calendar have one run each; write \
                       first or last";
        fields.fault("dst_overlap", message);
    }
    job.bounds = check_bounds(fields, &parsed, job.bounds, &job.timezone, job.dst);
    job.schedule = parsed.schedule;
    (fields.faults.count() == faults_before).then_some(Timing {
        definition: job,
        exact,
        by_deadline,
    })
}

/// Refuses values that have no effect. Default values are accepted, because clients send back jobs
/// as they were shown.
fn check_effects(fields: &mut Fields<'_>, schedule: &Schedule, job: &Definition) {
    let kind = match schedule {
        _ if is_turned_off(fields) => None,
        Schedule::Cron(_) | Schedule::Calendar(_) => None,
        Schedule::Once(_) => Some("a job that runs once has a moment"),
        Schedule::Interval(_) => Some("an interval is elapsed time"),
        Schedule::Periodic(_) => Some("a period is elapsed time"),
    };
    if let Some(kind) = kind {
        let default = Dst::default();
        let given = [
            ("dst_gap", "shift", job.dst.gap != default.gap),
            ("dst_overlap", "first", job.dst.overlap != default.overlap),
        ];
        for (name, word, _) in given.into_iter().filter(|(_, _, given)| *given) {
            let message = format!(
                "has no effect here: {kind}, which does not follow the clocks. It is for cron \
                 schedules and calendar intervals such as P1D; leave it out, or write {word}"
            );
            fields.fault(name, message);
        }
    }
    if job.avoid_blackout && job.blackout_periods.is_empty() {
        let message = "true has no effect without blackout_periods; give those, or write false";
        fields.fault("avoid_blackout", message);
    }
}

/// True if the document has `"schedule_enabled": false`. Fields that belong to the schedule are
/// accepted in that case.
pub(super) fn is_turned_off(fields: &mut Fields<'_>) -> bool {
    fields.value("schedule_enabled") == Some(&false.into())
}

/// Refuses `exact` and `prefer_window` for schedules whose start times the scheduler does not
/// choose.
fn check_placement(
    fields: &mut Fields<'_>,
    schedule: &Schedule,
    bounds: Bounds,
    exact: Option<bool>,
    prefer_window: Option<LocalHours>,
) {
    let is_anchored = matches!(schedule, Schedule::Interval(every) if every.anchor().is_some());
    let is_interval = matches!(schedule, Schedule::Interval(_));
    if exact.is_some() && is_anchored {
        let message = "has no effect beside an anchor, whose times the interval keeps; leave one of \
                       them out";
        fields.fault("exact", message);
    } else if exact.is_some() && !matches!(schedule, Schedule::Cron(_) | Schedule::Interval(_)) {
        let message = "is for cron schedules, whose times false spreads over a minute, and for \
                       intervals, which true makes start with a quarter of an hour and stay there";
        fields.fault("exact", message);
    }
    if prefer_window.is_none() {
        return;
    }
    let reason = if !is_interval {
        "this schedule fixes its own times"
    } else if is_anchored {
        "the anchor fixes the times of this interval"
    } else if bounds.start_at.is_some() {
        "start_at fixes the times of this interval"
    } else {
        return;
    };
    let message = format!(
        "is for intervals whose times the server chooses, like {{\"kind\": \"interval\", \"every\": \
         \"24h\"}}; {reason}, so leave it out"
    );
    fields.fault("prefer_window", message);
}

/// Reads `timezone`, or its short name `tz`.
fn timezone(fields: &mut Fields<'_>) -> Zone {
    let long = zone(fields, "timezone");
    let short = zone(fields, "tz");
    if let (Some(long), Some(short)) = (&long, &short)
        && long != short
    {
        fields.fault("tz", format!("contradicts timezone, which is {long}; leave one of them out"));
    }
    long.or(short).unwrap_or_default()
}

fn zone(fields: &mut Fields<'_>, name: &'static str) -> Option<Zone> {
    let text = fields.text(name)?;
    match Zone::get(text) {
        Ok(zone) => Some(zone),
        Err(error) => {
            fields.fault(name, format!("{} is {error}", shown(&text.into())));
            None
        }
    }
}

/// Checks `start_at`, `end_at` and `max_runs`, and adds the end that the schedule text itself
/// contains (`R5/…`).
fn check_bounds(
    fields: &mut Fields<'_>,
    parsed: &ParsedSchedule,
    mut bounds: Bounds,
    zone: &Zone,
    dst: Dst,
) -> Bounds {
    if !parsed.schedule.recurs() {
        let given = [
            ("start_at", bounds.start_at.is_some()),
            ("end_at", bounds.end_at.is_some()),
            ("max_runs", bounds.max_runs.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            fields.fault(name, "is for schedules that recur; this job runs once");
        }
        return bounds;
    }
    if let (Some(start), Some(end)) = (bounds.start_at, bounds.end_at)
        && end < start
    {
        fields.fault("end_at", format!("lies before start_at, which is {start}"));
    }
    let Some(times) = parsed.times else { return bounds };
    let contradiction =
        |times| format!("contradicts schedule, which has {times} runs; leave one of them out");
    match nth_time(&parsed.schedule, times, zone, dst) {
        None if bounds.max_runs.is_some_and(|max| max != times) => {
            fields.fault("max_runs", contradiction(times));
        }
        None => bounds.max_runs = Some(times),
        Some(last) if bounds.end_at.is_some_and(|end| end != last) => {
            fields.fault("end_at", contradiction(times));
        }
        Some(last) => bounds.end_at = Some(last),
    }
    bounds
}

/// Returns the `n`-th scheduled time, counted from 1, of a schedule that begins at its anchor;
/// `None` for a schedule without an anchor. A scheduled time that daylight saving skips counts,
/// even if it does not run.
fn nth_time(schedule: &Schedule, n: u64, zone: &Zone, dst: Dst) -> Option<Timestamp> {
    match schedule {
        Schedule::Interval(interval) => {
            let later = interval.every().saturating_mul(n - 1);
            interval.anchor().map(|anchor| anchor.saturating_add(later))
        }
        Schedule::Calendar(every) => every.nth_time(n - 1, zone, dst),
        Schedule::Once(_) | Schedule::Cron(_) | Schedule::Periodic(_) => None,
    }
}
