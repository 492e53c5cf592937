//! Makes marks of the scheduled times of jobs.

use evenkeel_core::schedule::MovedBy;
use evenkeel_core::timeline::{TimelinePeriod, expected_end};
use evenkeel_core::{Definition, Span, Timestamp};
use evenkeel_store::{Job, JobState};

use super::{Mark, MarkStatus};
use crate::starts::{Start, Starts};

/// The start times of a job that are not in the past.
pub(super) struct FutureStarts<'a> {
    definition: &'a Definition,
    pub(super) average: Span,
    /// The run that is due but has not started, and whether its start is an estimate.
    overdue: Option<(Start, bool)>,
    starts: Starts<'a>,
}

impl<'a> FutureStarts<'a> {
    /// Returns the start times from `from` on, beginning with the stored next run time of the job.
    /// A job that is paused or cancelled has none.
    pub(super) fn new(job: &'a Job, from: Timestamp, now: Timestamp) -> Self {
        let definition = &job.definition;
        let average = definition.average(job.history.average_good_duration);
        let next = job.next_at.filter(|_| job.state == JobState::Active);
        let new = |next, fired| Starts::new(definition, average, next, fired);
        let mut starts = new(next, job.fired);
        let first = starts.next();
        let overdue = first.filter(|first| first.at < now);
        let overdue = overdue.zip(job.next_start(now)).map(|(first, actual)| {
            let moved = if actual > now { Some(MovedBy::Blackout) } else { first.moved };
            // A run that may start now only waits for a worker.
            (Start { at: actual.max(now), moved, ..first }, actual <= now)
        });
        match &overdue {
            // The times until the start of the overdue run are missed.
            Some((start, _)) => {
                let after = start.at.saturating_add(Span::from_micros(1));
                starts.skip_starts_before(after.max(from));
            }
            None => {
                starts = new(next, job.fired);
                starts.skip_starts_before(from);
            }
        }
        let overdue = overdue.filter(|(start, _)| start.at >= from);
        Self { definition, average, overdue, starts }
    }

    /// Skips the start times before `until`, and returns their number; `None` if only a visit of
    /// each start time can tell it.
    pub(super) fn skip_before(&mut self, until: Timestamp) -> Option<u64> {
        let is_plain = self.overdue.is_none() && self.definition.blackout_periods.is_empty();
        is_plain.then(|| self.starts.skip_before(until))
    }
}

impl Iterator for FutureStarts<'_> {
    /// A start, and whether it is an estimate.
    type Item = (Start, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let is_estimate = self.definition.schedule.follows_its_end();
        self.overdue.take().or_else(|| Some((self.starts.next()?, is_estimate)))
    }
}

/// Returns the marks of at most `limit` expected runs of a job, the earliest first.
pub(super) fn marks_of(
    job: &Job,
    period: TimelinePeriod,
    now: Timestamp,
    limit: usize,
) -> Vec<Mark> {
    let starts = FutureStarts::new(job, period.from(), now);
    let average = starts.average;
    let starts = starts.take_while(|(start, _)| start.at < period.to()).take(limit);
    let marks = starts.map(|(start, start_is_estimate)| {
        let end = expected_end(start.at, average, now);
        Mark {
            job: job.id,
            job_name: job.about.name.clone(),
            pool: Some(job.definition.pool.clone()),
            node: None,
            scheduled_at: start.scheduled_at,
            start: Some(start.at),
            end,
            status: MarkStatus::Expected,
            run: None,
            start_is_estimate,
            end_is_estimate: end.is_some(),
            moved_by: start.moved,
            lane: 0,
        }
    });
    marks.collect()
}
