//! When a job runs and when not: what the document of a job and that of a preview have in common.

use evenkeel_core::blackout::{Blackout, LocalHours};
use evenkeel_core::job::Bounds;
use evenkeel_core::schedule::{Dst, Gap, Overlap};
use evenkeel_core::{Definition, Schedule, Span, Timestamp, Zone};

use super::expression::Said;
use super::fields::Fields;
use super::hours;
use super::limits::{RUNS_MAX, SPAN_MAX};
use super::schedule;
use crate::fault::shown;

/// When a job runs and when not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    pub schedule: Schedule,
    pub bounds: Bounds,
    pub timezone: Zone,
    pub dst: Dst,
    pub blackout_periods: Vec<Blackout>,
    pub avoid_blackout: bool,
    pub average_override: Option<Span>,
    /// Hours in which it would best run.
    pub prefer_window: Option<LocalHours>,
    /// Does it run at the very times its expression names, or with the start of its slot?
    pub exact: Option<bool>,
    /// Was it said as in the document about deadlines, which has its own rule for retries?
    pub by_deadline: bool,
}

impl Timing {
    /// A job with these times that does nothing.
    pub(crate) fn definition(self) -> Definition {
        self.of(Definition::noop(Schedule::Once(evenkeel_core::schedule::Once::NOW)))
    }

    /// The same job with these times.
    pub(super) fn of(self, job: Definition) -> Definition {
        Definition {
            schedule: self.schedule,
            bounds: self.bounds,
            timezone: self.timezone,
            dst: self.dst,
            blackout_periods: self.blackout_periods,
            avoid_blackout: self.avoid_blackout,
            average_override: self.average_override,
            prefer_window: self.prefer_window,
            ..job
        }
    }
}

/// Reads all that; `None` if something is wrong with it.
pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Timing> {
    let faults_before = fields.faults.count();
    let said = schedule::read(fields);
    let timezone = timezone(fields);
    let dst = Dst {
        gap: fields
            .word("dst_gap", &[("shift", Gap::Shift), ("skip", Gap::Skip)])
            .unwrap_or_default(),
        overlap: fields
            .word(
                "dst_overlap",
                &[("first", Overlap::First), ("last", Overlap::Last), ("both", Overlap::Both)],
            )
            .unwrap_or_default(),
    };
    let bounds = Bounds {
        start_at: fields.moment("start_at"),
        end_at: fields.moment("end_at"),
        max_runs: fields.number("max_runs", 1..=RUNS_MAX),
    };
    let exact = fields.flag("exact");
    let blackout_periods = hours::blackouts(fields);
    let prefer_window = hours::preferred(fields, &blackout_periods);
    let avoid_blackout = fields.flag("avoid_blackout").unwrap_or(false);
    let average_override = fields.span("average_duration_override", Span::ZERO..=SPAN_MAX);
    let schedule::Read { said, by_deadline } = said?;
    check_chosen(fields, &said.schedule, bounds, exact, prefer_window);
    check_effects(fields, &said.schedule, dst, avoid_blackout && blackout_periods.is_empty());
    if dst.overlap == Overlap::Both && matches!(said.schedule, Schedule::Calendar(_)) {
        let message = "both is for cron schedules: days of the calendar have one run each; write \
                       first or last";
        fields.fault("dst_overlap", message);
    }
    let bounds = check_bounds(fields, &said, bounds, &timezone, dst);
    if fields.faults.count() > faults_before {
        return None;
    }
    Some(Timing {
        schedule: said.schedule,
        bounds,
        timezone,
        dst,
        blackout_periods,
        avoid_blackout,
        average_override,
        prefer_window,
        exact,
        by_deadline,
    })
}

/// Refuses what would have no effect, unless it is the default, which is shown and sent back.
fn check_effects(fields: &mut Fields<'_>, schedule: &Schedule, dst: Dst, avoids_nothing: bool) {
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
            ("dst_gap", "shift", dst.gap != default.gap),
            ("dst_overlap", "first", dst.overlap != default.overlap),
        ];
        for (name, word, _) in given.into_iter().filter(|(_, _, given)| *given) {
            let message = format!(
                "has no effect here: {kind}, which does not follow the clocks. It is for cron \
                 schedules and calendar intervals such as P1D; leave it out, or write {word}"
            );
            fields.fault(name, message);
        }
    }
    if avoids_nothing {
        let message = "true has no effect without blackout_periods; name them, or write false";
        fields.fault("avoid_blackout", message);
    }
}

/// Is there a schedule, perhaps, that is not to be followed for now? What belongs to it may stay.
pub(super) fn is_turned_off(fields: &mut Fields<'_>) -> bool {
    fields.value("schedule_enabled") == Some(&false.into())
}

/// What says where load is to put a job is for those whose times are chosen by load.
fn check_chosen(
    fields: &mut Fields<'_>,
    schedule: &Schedule,
    bounds: Bounds,
    exact: Option<bool>,
    prefer_window: Option<LocalHours>,
) {
    let anchored = matches!(schedule, Schedule::Interval(every) if every.anchor().is_some());
    let by_interval = matches!(schedule, Schedule::Interval(_));
    if exact.is_some() && anchored {
        let message = "says nothing beside an anchor, whose times the interval keeps; leave one of \
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
    let reason = if !by_interval {
        "the times of this schedule follow from itself"
    } else if anchored {
        "this one's times are those of its anchor"
    } else if bounds.start_at.is_some() {
        "this one's times are counted from start_at"
    } else {
        return;
    };
    let message = format!(
        "is for intervals whose times are chosen, like {{\"kind\": \"interval\", \"every\": \
         \"24h\"}}; {reason}, so leave it out"
    );
    fields.fault("prefer_window", message);
}

/// `timezone`, or `tz` for short.
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

/// The bounds, with what the schedule itself says about its end.
fn check_bounds(
    fields: &mut Fields<'_>,
    said: &Said,
    mut bounds: Bounds,
    zone: &Zone,
    dst: Dst,
) -> Bounds {
    if !said.schedule.recurs() {
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
    let Some(times) = said.times else { return bounds };
    let contradiction =
        |times| format!("contradicts schedule, which has {times} runs; leave one of them out");
    match nth_time(&said.schedule, times, zone, dst) {
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

/// The `n`-th time of a schedule that begins at its anchor, counted from 1; `None` if it has none.
/// A time that the clocks jump over counts even if it is left out.
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
