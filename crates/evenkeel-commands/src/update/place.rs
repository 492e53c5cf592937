//! Which next time a job gets when it is changed.

use evenkeel_core::blackout::Blackouts;
use evenkeel_core::next_time::{ScheduleState, next_after_change};
use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Once};
use evenkeel_core::{Definition, Schedule, Timestamp};
use evenkeel_store::{Job, JobState};

use crate::Fault;
use crate::jobs::no_time_left;

/// What a change of its definition does to the next time of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Moves {
    /// It keeps its rhythm, which only other times end.
    Stays,
    /// Who resumes it places it, and then must know that its times are others.
    WhenResumed,
    /// It gets another one, at least if it has one left.
    Now,
}

/// What a change of its definition does to the next time of a job.
pub(super) fn moves(job: &Job, new: &Definition) -> Moves {
    let old = &job.definition;
    let other_times = when(&old.schedule) != when(&new.schedule);
    if job.state != JobState::Active {
        return if other_times { Moves::WhenResumed } else { Moves::Stays };
    }
    let by_clocks = matches!(new.schedule, Schedule::Cron(_) | Schedule::Calendar(_));
    let other_clocks = by_clocks && (old.timezone != new.timezone || old.dst != new.dst);
    let other_bounds = old.bounds != new.bounds && !stays(job, new);
    if other_times || other_clocks || other_bounds || leaves_preferred(job, new) {
        Moves::Now
    } else {
        Moves::Stays
    }
}

/// Is it to run in other hours than before, and its next time does not?
fn leaves_preferred(job: &Job, new: &Definition) -> bool {
    let Some(window) = new.prefer_window else { return false };
    let old = &job.definition;
    let is_other = old.prefer_window != Some(window) || old.timezone != new.timezone;
    let preferred = Blackouts::new(std::slice::from_ref(&window), &new.timezone);
    is_other && job.next_at.is_some_and(|next| !preferred.is_in_blackout(next))
}

/// The next time that a change of its definition brings a job that [`moves`], at `now`; `choose`
/// says which time after a moment it is.
pub(crate) fn placed(
    job: &Job,
    new: &Definition,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Result<Option<Timestamp>, Vec<Fault>> {
    let next_at = next_after_change(new, so_far(job), now, choose);
    let is_bounded = new.bounds.end_at.is_some() || new.bounds.max_runs.is_some();
    if next_at.is_none() && !is_bounded {
        return Err(vec![no_time_left(new, now)]);
    }
    Ok(next_at)
}

/// What has become of a job so far.
fn so_far(job: &Job) -> ScheduleState {
    ScheduleState {
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
