//! I8: acknowledged commands take effect. This module also computes the expected run times of jobs
//! that received commands.

use std::collections::BTreeMap;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{JobNo, Span, Timestamp};
use evenkeel_store::Attempt;

use crate::checker::Evidence;
use crate::world::{PlannedJob, ScheduleChange, Timing};

/// Scheduled times of a job: `first`, then one per interval `every`, up to `end`.
#[derive(Copy, Clone, Debug)]
pub struct TimeSeries {
    pub first: Timestamp,
    pub every: Span,
    pub end: Timestamp,
}

/// Returns the expected run times of a job with a fixed interval, in one series per period between
/// two commands. Returns no series for jobs without a fixed interval.
pub fn time_series(planned: &PlannedJob, until: Timestamp) -> Vec<TimeSeries> {
    let Timing::Fixed { first, every } = planned.timing else { return Vec::new() };
    let mut all = vec![TimeSeries { first, every, end: until }];
    for change in &planned.changes {
        let (next_at, then) = match *change {
            ScheduleChange::Stopped { next_at, .. } => (next_at, None),
            ScheduleChange::Resumed { first, every, .. } => (None, Some((first, every))),
            ScheduleChange::Moved { next_at, first, every } => (next_at, Some((first, every))),
        };
        // A scheduled time that was not fired before a command changed the schedule is never fired.
        if let (Some(last), Some(next_at)) = (all.last_mut(), next_at) {
            last.end = last.end.min(next_at);
        }
        all.extend(then.map(|(first, every)| TimeSeries { first, every, end: until }));
    }
    all
}

/// Returns the times at which a job was stopped and resumed, and whether a stop was a cancellation.
fn stops(planned: &PlannedJob) -> Vec<(Timestamp, Option<Timestamp>, bool)> {
    let mut stops: Vec<(Timestamp, Option<Timestamp>, bool)> = Vec::new();
    for change in &planned.changes {
        match *change {
            ScheduleChange::Stopped { at, for_good, .. } => stops.push((at, None, for_good)),
            ScheduleChange::Resumed { at, .. } => {
                if let Some((_, until, _)) = stops.last_mut() {
                    *until = Some(at);
                }
            }
            ScheduleChange::Moved { .. } => {}
        }
    }
    stops
}

/// True if a command may have cancelled the run for this scheduled time.
pub fn may_have_been_cancelled(planned: &PlannedJob, scheduled_at: Timestamp) -> bool {
    stops(planned).iter().any(|(at, _, _)| scheduled_at <= *at)
}

/// I8: after a pause or cancel command is acknowledged, no run of the job starts, except runs
/// triggered during the pause.
pub fn stopped_jobs_do_not_start(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    violations: &mut Vec<String>,
) {
    let mut stopped: BTreeMap<JobNo, Vec<(Timestamp, Option<Timestamp>, bool)>> = BTreeMap::new();
    for planned in evidence.plan {
        stopped.insert(planned.job, stops(planned));
    }
    for run in runs.iter().filter(|run| run.status != AttemptStatus::Skipped) {
        let Some(started) = run.started_at else { continue };
        for (from, to, for_good) in stopped.get(&run.key.job_no).into_iter().flatten() {
            let inside = started > *from && to.is_none_or(|to| started < to);
            let asked_for = !for_good && run.key.scheduled_at > *from;
            if inside && !asked_for {
                violations
                    .push(format!("I8: {:?} started at {started}, stopped at {from}", run.key));
            }
        }
    }
}
