//! What a schedule would do, before there is a job with it.

use evenkeel_core::{Definition, JobId, Schedule, Slot, Span, Timestamp, Zone};
use serde_json::Value;

use crate::Fault;
use crate::balance::is_chosen;
use crate::describe::describe;
use crate::fault::{Faults, shown};
use crate::read::{Fields, Timing, read_timing};
use crate::starts::{NextTime, Starts};

/// How many times the server tells at once.
pub const PREVIEW_TIMES_MAX: u64 = 1000;
/// How many times are told at once where no server is needed.
pub const NEXT_TIMES_MAX: u64 = 10_000;
const TIMES_DEFAULT: u64 = 10;

/// Load is looked at for this long.
const DAY: Span = Span::from_secs(86_400);
/// In no more slots than this, as each of them costs a count.
const SLOTS_MAX: usize = 24;

/// What a schedule would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// `once`, `interval`, `cron` or `periodic`.
    pub kind: &'static str,
    /// In plain English.
    pub description: String,
    /// The zone its times are meant in.
    pub timezone: Zone,
    /// The first times.
    pub times: Vec<NextTime>,
    /// Are these the very times a job would have? Otherwise they are the latest there can be, or
    /// each job has times of its own.
    pub exact_times: bool,
    /// The slots with a start in the day from its first one on, up to 24 of them.
    pub slots: Vec<Slot>,
}

/// What the schedule that `document` describes would do, from its `from` on, or from `now` on.
/// At most `most` times may be asked for.
pub fn preview(document: &Value, now: Timestamp, most: u64) -> Result<Preview, Vec<Fault>> {
    let mut faults = Faults::default();
    let Some(object) = document.as_object() else {
        faults.add("", format!("a schedule is previewed from an object, not {}", shown(document)));
        return Err(faults.or::<()>(None).err().unwrap_or_default());
    };
    let mut fields = Fields::new(object, "", faults);
    let timing = read_timing(&mut fields);
    let from = fields.moment("from");
    let count = fields.number("count", 1..=most);
    let timing = fields.finish(|_| None).or(timing)?;
    let count = usize::try_from(count.unwrap_or(TIMES_DEFAULT)).unwrap_or(usize::MAX);
    Ok(of(timing, from.unwrap_or(now), count))
}

fn of(timing: Timing, from: Timestamp, count: usize) -> Preview {
    let (said, given) = (timing.exact, timing.definition);
    let exact = said.unwrap_or(true) || !matches!(given.schedule, Schedule::Cron(_));
    let given = match given.schedule {
        Schedule::Interval(every) => {
            let every = every.with_exact(said == Some(true));
            Definition { schedule: Schedule::Interval(every), ..given }
        }
        _ => given,
    };
    let description = describe(&given, exact);
    let has_own =
        matches!(&given.schedule, Schedule::Cron(by) if has_own_times(by.cron.expression()));
    let exact_times = exact && !has_own && !given.schedule.follows_its_end() && !is_chosen(&given);
    // There is no job yet: this one stands for all.
    let nobody = JobId(Default::default());
    let schedule = match &given.schedule {
        Schedule::Cron(_) => given.schedule.clone().settled(nobody, from, Some(true)),
        other => other.clone().settled(nobody, from, said),
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

/// The word for a kind of schedule that users see.
pub fn kind(schedule: &Schedule) -> &'static str {
    match schedule {
        Schedule::Once(_) => "once",
        Schedule::Interval(_) | Schedule::Calendar(_) => "interval",
        Schedule::Cron(_) => "cron",
        Schedule::Periodic(_) => "periodic",
    }
}

/// Does the expression have an `H`, outside of names like THU and MARCH?
fn has_own_times(expression: &str) -> bool {
    let items = expression.split([' ', '\t', ',']);
    items.into_iter().any(|item| item.starts_with(['H', 'h']))
}

#[cfg(test)]
mod tests;
