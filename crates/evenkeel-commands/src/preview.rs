//! Previews the start times of a schedule without creating a job.

use evenkeel_core::{Definition, JobId, Schedule, Slot, Span, Timestamp, Zone};
use serde_json::Value;

use crate::Fault;
use crate::balance::has_chosen_times;
use crate::describe::describe;
use crate::read::{Fields, Timing, read_timing};
use crate::starts::{NextTime, Starts};

/// Maximum number of start times in an API response.
pub const PREVIEW_TIMES_MAX: u64 = 1000;
/// Maximum number of start times on the command line.
pub const NEXT_TIMES_MAX: u64 = 10_000;
const TIMES_DEFAULT: u64 = 10;

/// Length of the period, from the first start time on, that the field `slots` covers.
const DAY: Span = Span::from_secs(86_400);
/// Maximum number of time slots in a preview; counting the jobs of each time slot costs a query.
const SLOTS_MAX: usize = 24;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// Kind of schedule: `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    pub description: String,
    pub timezone: Zone,
    pub times: Vec<NextTime>,
    /// True if a job would have exactly the start times in `times`. False if `times` are the latest
    /// possible start times, or if start times differ from job to job.
    pub exact_times: bool,
    /// Up to 24 time slots in which the schedule starts runs, within 24 hours of the first start
    /// time.
    pub slots: Vec<Slot>,
}

/// Previews the schedule in `document`, from the time in its field `from` on, or from `now` on. The
/// field `count` of the document may be at most `times_max`.
pub fn preview(document: &Value, now: Timestamp, times_max: u64) -> Result<Preview, Vec<Fault>> {
    let read = |fields: &mut Fields<'_>| {
        let timing = read_timing(fields);
        let (from, count) = (fields.moment("from"), fields.number("count", 1..=times_max));
        Some((timing?, from, count))
    };
    let (timing, from, count) = Fields::read_object(document, "a preview needs an object", read)?;
    let count = usize::try_from(count.unwrap_or(TIMES_DEFAULT)).unwrap_or(usize::MAX);
    Ok(preview_timing(timing, from.unwrap_or(now), count))
}

fn preview_timing(timing: Timing, from: Timestamp, count: usize) -> Preview {
    let (exact_setting, given) = (timing.exact, timing.definition);
    let exact = exact_setting.unwrap_or(true) || !matches!(given.schedule, Schedule::Cron(_));
    let given = match given.schedule {
        Schedule::Interval(every) => {
            let every = every.with_exact(exact_setting == Some(true));
            Definition { schedule: Schedule::Interval(every), ..given }
        }
        _ => given,
    };
    let description = describe(&given, exact);
    let has_own =
        matches!(&given.schedule, Schedule::Cron(by) if has_own_times(by.cron.expression()));
    let exact_times =
        exact && !has_own && !given.schedule.follows_its_end() && !has_chosen_times(&given);
    // A previewed schedule has no job yet, so the preview uses a fixed job id.
    let no_job = JobId(Default::default());
    let schedule = match &given.schedule {
        Schedule::Cron(_) => given.schedule.clone().resolved(no_job, from, Some(true)),
        other => other.clone().resolved(no_job, from, exact_setting),
    };
    let definition = Definition { schedule, ..given };
    let average = definition.average(None);
    let first = definition.timetable().first_after(from);
    let starts = || Starts::new(&definition, average, first, 0);
    let times = starts().take(count).map(|start| NextTime::new(start, &definition.timezone));
    let times = times.collect();
    let first_start = starts().next().map_or(from, |start| start.at);
    let mut slots = starts().slots_before(first_start.saturating_add(DAY));
    slots.truncate(SLOTS_MAX);
    Preview {
        kind: kind(&definition.schedule),
        description,
        timezone: definition.timezone.clone(),
        times,
        exact_times,
        slots,
    }
}

/// Returns the public name of the kind of a schedule.
pub fn kind(schedule: &Schedule) -> &'static str {
    match schedule {
        Schedule::Once(_) => "once",
        Schedule::Interval(_) | Schedule::Calendar(_) => "interval",
        Schedule::Cron(_) => "cron",
        Schedule::Periodic(_) => "periodic",
    }
}

/// True if a cron expression contains `H` outside of names such as THU and MARCH.
fn has_own_times(expression: &str) -> bool {
    let items = expression.split([' ', '\t', ',']);
    items.into_iter().any(|item| item.starts_with(['H', 'h']))
}

#[cfg(test)]
mod tests;
