//! Warns about deadlines of a job that cannot be kept.

use evenkeel_core::Schedule;
use evenkeel_core::conflict::BlackoutConflict;
use evenkeel_store::Job;

use crate::describe::moment;

/// Returns warnings for the client that created or changed a job. Each warning begins with the name
/// of the job field that causes it.
pub fn warnings_of(job: &Job) -> Vec<String> {
    let past = job.definition.past(&job.history, job.since);
    let conflict = job.next_at.and_then(|next| job.definition.blackout_conflict(next, &past));
    conflict.map(|conflict| blackout_warning(job, &conflict)).into_iter().collect()
}

fn blackout_warning(job: &Job, conflict: &BlackoutConflict) -> String {
    let when = |at| moment(at, &job.definition.timezone);
    let (promise, way_out) = match &job.definition.schedule {
        Schedule::Once(_) => ("a start by", "a longer `tolerance`, another time"),
        Schedule::Interval(_) | Schedule::Calendar(_) => {
            ("a successful run by", "a longer `tolerance` in its schedule")
        }
        Schedule::Cron(_) => ("a successful run by", "a longer `max_duration`, other times"),
        Schedule::Periodic(_) => ("a successful run by", "a longer period"),
    };
    format!(
        "blackout_periods: the run of {} is held until {}, but the schedule promises {promise} {}. \
         A blackout does not extend this deadline: until a run succeeds, the job's condition is \
         ERROR with the reason held_by_blackout. Give the job {way_out}, or shorter blackouts.",
        when(conflict.time),
        when(conflict.starts_at),
        when(conflict.deadline),
    )
}
