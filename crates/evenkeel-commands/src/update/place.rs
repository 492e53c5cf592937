//! Which next time a job gets when it is changed.

use evenkeel_core::control::{SoFar, moved_to};
use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Once};
use evenkeel_core::{Definition, Schedule, Timestamp};
use evenkeel_store::{Job, Standing};

use crate::Fault;
use crate::jobs::no_time_left;

/// The next time that a change of its definition brings a job, at `now`: `None` if it keeps its
/// rhythm, which only other times end.
pub(crate) fn placed(
    job: &Job,
    new: &Definition,
    now: Timestamp,
) -> Result<Option<Option<Timestamp>>, Vec<Fault>> {
    let old = &job.definition;
    let other_times = when(&old.schedule) != when(&new.schedule);
    // Who resumes it places it, and then must know that its times are others.
    if job.standing != Standing::Active {
        return Ok(other_times.then_some(None));
    }
    let by_clocks = matches!(new.schedule, Schedule::Cron(_) | Schedule::Calendar(_));
    let other_clocks = by_clocks && (old.timezone != new.timezone || old.dst != new.dst);
    if !(other_times || other_clocks) && (old.bounds == new.bounds || stays(job, new)) {
        return Ok(None);
    }
    let next_at = moved_to(new, so_far(job), now);
    let is_bounded = new.bounds.end_at.is_some() || new.bounds.max_runs.is_some();
    if next_at.is_none() && !is_bounded {
        return Err(vec![no_time_left(new, now)]);
    }
    Ok(Some(next_at))
}

/// What has become of a job so far.
fn so_far(job: &Job) -> SoFar {
    SoFar {
        fired: job.fired,
        last_fired_at: job.last_fired_at,
        live: job.live,
        last_outcome: job.last_outcome,
        since: Some(job.since),
    }
}

/// A schedule without what says how long its runs may take.
fn when(schedule: &Schedule) -> Schedule {
    match schedule {
        Schedule::Once(once) => Schedule::Once(Once { tolerance: None, ..*once }),
        Schedule::Interval(every) => Schedule::Interval(every.with_tolerance(None)),
        Schedule::Calendar(every) => {
            Schedule::Calendar(CalendarInterval { tolerance: None, ..*every })
        }
        Schedule::Cron(by) => Schedule::Cron(CronSchedule { max_duration: None, ..by.clone() }),
        Schedule::Periodic(periodic) => Schedule::Periodic(*periodic),
    }
}

/// Is its next time within the new bounds, too?
fn stays(job: &Job, new: &Definition) -> bool {
    let bounds = new.bounds;
    job.next_at.is_some_and(|next| {
        bounds.start_at.is_none_or(|start| start <= next)
            && bounds.end_at.is_none_or(|end| next <= end)
            && bounds.max_runs.is_none_or(|most| job.fired < most)
            // An earlier start may let it start earlier.
            && bounds.start_at >= job.definition.bounds.start_at
    })
}
