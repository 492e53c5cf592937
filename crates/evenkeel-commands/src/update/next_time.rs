//! Decides how a change affects the next run time of a job.

use evenkeel_core::blackout::Blackouts;
use evenkeel_core::next_time::{ScheduleState, next_after_change};
use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Once};
use evenkeel_core::{Definition, Schedule, Timestamp};
use evenkeel_store::{Job, JobState};

use crate::Fault;
use crate::jobs::no_time_left;

/// How a change affects the next run time of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NextTimeChange {
    /// The next run time stays.
    Keep,
    /// The schedule of a paused job changed, so a new next run time is chosen when the job is
    /// resumed.
    WhenResumed,
    /// A new next run time is chosen now, if the schedule has a run left.
    Now,
}

pub(super) fn next_time_change(job: &Job, new: &Definition) -> NextTimeChange {
    let old = &job.definition;
    let other_times = times_only(&old.schedule) != times_only(&new.schedule);
    if job.state != JobState::Active {
        return if other_times { NextTimeChange::WhenResumed } else { NextTimeChange::Keep };
    }
    let by_clocks = matches!(new.schedule, Schedule::Cron(_) | Schedule::Calendar(_));
    let other_clocks = by_clocks && (old.timezone != new.timezone || old.dst != new.dst);
    let other_bounds = old.bounds != new.bounds && !is_within_bounds(job, new);
    if other_times || other_clocks || other_bounds || is_outside_preferred(job, new) {
        NextTimeChange::Now
    } else {
        NextTimeChange::Keep
    }
}

/// True if the preferred hours have changed and the job's next run time is outside of the new
/// preferred hours.
fn is_outside_preferred(job: &Job, new: &Definition) -> bool {
    let Some(window) = new.prefer_window else { return false };
    let old = &job.definition;
    let is_other = old.prefer_window != Some(window) || old.timezone != new.timezone;
    let preferred = Blackouts::new(std::slice::from_ref(&window), &new.timezone);
    is_other && job.next_at.is_some_and(|next| !preferred.is_in_blackout(next))
}

/// Returns the next run time of a changed job at `now`. `choose` returns the first run time after a
/// given time.
pub(crate) fn new_next_time(
    job: &Job,
    new: &Definition,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Result<Option<Timestamp>, Vec<Fault>> {
    let next_at = next_after_change(new, schedule_state(job), now, choose);
    let is_bounded = new.bounds.end_at.is_some() || new.bounds.max_runs.is_some();
    if next_at.is_none() && !is_bounded {
        return Err(vec![no_time_left(new, now)]);
    }
    Ok(next_at)
}

pub(crate) fn schedule_state(job: &Job) -> ScheduleState {
    ScheduleState {
        fired: job.fired,
        last_fired_at: job.last_fired_at,
        live: job.live,
        last_outcome: job.last_outcome,
        since: Some(job.since),
    }
}

/// Returns a schedule without its deadline, to compare only the run times.
fn times_only(schedule: &Schedule) -> Schedule {
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

/// True if the job's next run time is allowed by the new `start_at`, `end_at` and `max_runs`.
fn is_within_bounds(job: &Job, new: &Definition) -> bool {
    let bounds = new.bounds;
    job.next_at.is_some_and(|next| {
        bounds.start_at.is_none_or(|start| start <= next)
            && bounds.end_at.is_none_or(|end| next <= end)
            && bounds.max_runs.is_none_or(|most| job.fired < most)
            // An earlier `start_at` may allow an earlier next run time.
            && bounds.start_at >= job.definition.bounds.start_at
    })
}
