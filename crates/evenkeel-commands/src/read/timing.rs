//! Reads the fields, shared by jobs and schedule previews, that define when a job runs and when it
//! must not run.
use super::fields::Fields;
use super::{hours, job_fields, schedule};
use crate::fault::shown;
use evenkeel_core::schedule::{Dst, Once, Overlap};
use evenkeel_core::{Definition, Schedule, Timestamp, Zone};

/// The fields of a job that define when it runs and when it must not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// Definition of a job that has only the fields that define when it runs.
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
    let (parsed, by_deadline) = parsed?;
    job.schedule = parsed.schedule;
    check_placement(fields, &job, exact);
    check_effects(fields, &job);
    check_bounds(fields, parsed.times, &mut job);
    let is_valid = fields.faults.count() == faults_before;
    is_valid.then_some(Timing { definition: job, exact, by_deadline })
}

/// Refuses fields whose values have no effect on the schedule. Default values are accepted, because
/// clients send back whole jobs.
fn check_effects(fields: &mut Fields<'_>, job: &Definition) {
    let kind = match job.schedule {
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
    if job.dst.overlap == Overlap::Both && matches!(job.schedule, Schedule::Calendar(_)) {
        let message = "both is for cron schedules: days of the calendar have one run each; write \
                       first or last";
        fields.fault("dst_overlap", message);
    }
}

/// True if the document has `"schedule_enabled": false`. Fields that belong to a disabled schedule
/// are accepted even if they have no effect.
pub(super) fn is_turned_off(fields: &mut Fields<'_>) -> bool {
    fields.value("schedule_enabled") == Some(&false.into())
}

/// Refuses `exact` and `prefer_window` for schedules whose start times the scheduler does not
/// choose.
fn check_placement(fields: &mut Fields<'_>, job: &Definition, exact: Option<bool>) {
    let schedule = &job.schedule;
    let is_anchored = matches!(schedule, Schedule::Interval(every) if every.anchor().is_some());
    let is_interval = matches!(schedule, Schedule::Interval(_));
    if exact.is_some() && is_anchored {
        let message = "has no effect beside an anchor, whose times the interval keeps; leave one of \
                       them out";
        fields.fault("exact", message);
    } else if exact.is_some() && !matches!(schedule, Schedule::Cron(_) | Schedule::Interval(_)) {
        let message = "is for cron schedules, where false spreads the starts over a minute, and for \
                       intervals, where true puts the starts at the beginning of a slot; leave it out";
        fields.fault("exact", message);
    }
    if job.prefer_window.is_none() {
        return;
    }
    let reason = if !is_interval {
        "this schedule fixes its own times"
    } else if is_anchored {
        "the anchor fixes the times of this interval"
    } else if job.bounds.start_at.is_some() {
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
    let wrong = |error| format!("{} is {error}", shown(&text.into()));
    fields.valid(name, Zone::get(text).map_err(wrong))
}

/// Checks `start_at`, `end_at` and `max_runs`, and adds the end of a schedule such as `R5/…`, whose
/// text contains the number of runs.
fn check_bounds(fields: &mut Fields<'_>, times: Option<u64>, job: &mut Definition) {
    let bounds = job.bounds;
    if !job.schedule.recurs() {
        let given = [
            ("start_at", bounds.start_at.is_some()),
            ("end_at", bounds.end_at.is_some()),
            ("max_runs", bounds.max_runs.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            fields.fault(name, "is for schedules that recur; this job runs once");
        }
        return;
    }
    if let (Some(start), Some(end)) = (bounds.start_at, bounds.end_at)
        && end < start
    {
        fields.fault("end_at", format!("lies before start_at, which is {start}"));
    }
    let Some(times) = times else { return };
    let contradiction =
        format!("contradicts schedule, which has {times} runs; leave one of them out");
    match nth_time(job, times) {
        None if bounds.max_runs.is_some_and(|max| max != times) => {
            fields.fault("max_runs", contradiction);
        }
        None => job.bounds.max_runs = Some(times),
        Some(last) if bounds.end_at.is_some_and(|end| end != last) => {
            fields.fault("end_at", contradiction);
        }
        Some(last) => job.bounds.end_at = Some(last),
    }
}

/// Returns the `n`-th scheduled time, counted from 1, of a schedule that begins at its anchor;
/// `None` for a schedule without an anchor. A scheduled time that is skipped because of daylight
/// saving is also counted.
fn nth_time(job: &Definition, n: u64) -> Option<Timestamp> {
    match &job.schedule {
        Schedule::Interval(interval) => {
            let later = interval.every().saturating_mul(n - 1);
            interval.anchor().map(|anchor| anchor.saturating_add(later))
        }
        Schedule::Calendar(every) => every.nth_time(n - 1, &job.timezone, job.dst),
        Schedule::Once(_) | Schedule::Cron(_) | Schedule::Periodic(_) => None,
    }
}
