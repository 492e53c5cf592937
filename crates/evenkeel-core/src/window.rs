//! Computes the start window of a job: the earliest and the latest start of its next run, for every
//! kind of schedule.

use crate::blackout::Blackouts;
use crate::history::History;
use crate::job::{Bounds, Definition};
use crate::schedule::{Once, Schedule, Timetable};
use crate::time::{Span, Timestamp};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StartWindow {
    /// The earliest start of the next run. A retry or a blackout makes the earliest start later.
    pub can_start_by: Timestamp,
    /// The latest time at which the next run can start and probably still finish by its deadline.
    /// Retries and blackouts do not change the latest start.
    pub should_start_by: Timestamp,
}

/// The part of a job's history on which its deadlines depend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Past {
    /// The start of the last successful run. If no run has succeeded since the job was created,
    /// rescheduled or resumed, `reference` is the time of the creation, change or resumption.
    pub reference: Timestamp,
    /// The average duration of successful runs; zero if unknown.
    pub average: Span,
}

impl Definition {
    /// Returns the data on which deadlines depend, if the deadline promise began at `since`.
    pub fn past(&self, history: &History, since: Timestamp) -> Past {
        let last_success = history.last_good_start_at;
        Past {
            reference: last_success.map_or(since, |last_success| last_success.max(since)),
            average: self.average(history.average_good_duration),
        }
    }

    /// Returns the expected duration of a successful run: the configured average or, if none is
    /// configured, `seen`.
    pub fn average(&self, seen: Option<Span>) -> Span {
        self.average_override.or(seen).unwrap_or(Span::ZERO)
    }

    pub fn timetable(&self) -> Timetable<'_> {
        let Self { schedule, timezone: zone, dst, bounds, .. } = self;
        Timetable { schedule, zone, dst: *dst, bounds: *bounds }
    }

    pub fn blackouts(&self) -> Blackouts<'_> {
        Blackouts::new(&self.blackout_periods, &self.timezone)
    }

    /// Returns the first time at or after `moment` at which the job may start. The job may not
    /// start in a blackout. With `avoid_blackout`, a run with the duration `average` must also
    /// finish before the next blackout. With `avoid_blackout`, a run that is longer than every gap
    /// between blackouts starts anyway, because it would never start otherwise.
    pub fn may_start_from(&self, moment: Timestamp, average: Span) -> Timestamp {
        let blackouts = self.blackouts();
        let mut start = blackouts.next_open(moment);
        if blackouts.is_empty() || !self.fits_between_blackouts(average) {
            return start;
        }
        // On a day with a clock change, the gap between two blackouts may be too short for a run,
        // so gaps of the following day are tried as well.
        for _ in 0..=4 * self.blackout_periods.len() {
            match blackouts.next_start(start) {
                Some(blackout_start) if blackout_start < start.saturating_add(average) => {
                    start = blackouts.next_open(blackout_start);
                }
                Some(_) | None => break,
            }
        }
        start
    }

    /// Returns when the run for the scheduled time `time` can start, as seen at `now`: at the
    /// scheduled time, or at the end of the blackout that contains the scheduled time. If the
    /// returned time is at or before `now`, the run only waits for a worker. All parts of the
    /// program that show the next start of a job call `next_start`.
    pub fn next_start(&self, time: Timestamp, average: Span, now: Timestamp) -> Timestamp {
        let start = self.may_start_from(time, average);
        if start > now {
            return start;
        }
        // No worker claimed the run when it could first start, and another blackout may have begun
        // since then.
        let start_now = self.may_start_from(now, average);
        if start_now > now { start_now } else { start }
    }

    /// True if the job has `avoid_blackout` and its runs fit between two blackouts. One minute is
    /// added, because a run that fits exactly could start only at one single moment.
    fn fits_between_blackouts(&self, average: Span) -> bool {
        const MARGIN: Span = Span::from_secs(60);
        let needed = Span::from_micros(average.as_micros().saturating_add(MARGIN.as_micros()));
        self.avoid_blackout && needed <= self.blackouts().longest_open()
    }

    /// Returns until when the job may start, if it may start at `moment`. Returns `None` if the job
    /// has no blackouts.
    pub fn may_start_until(&self, moment: Timestamp, average: Span) -> Option<Timestamp> {
        let blackouts = self.blackouts();
        let blackout_start = blackouts.next_start(moment)?;
        let fits = self.fits_between_blackouts(average);
        Some(if fits { blackout_start.saturating_sub(average).max(moment) } else { blackout_start })
    }

    /// Returns the deadline of the run for the scheduled time `time`. If an earlier scheduled time
    /// has no successful run yet, the deadline of the earlier scheduled time counts.
    pub fn must_be_over_by(&self, time: Timestamp, reference: Timestamp) -> Timestamp {
        let unmet = || self.unmet(time, reference);
        match &self.schedule {
            Schedule::Once(once) => time.saturating_add(once.tolerance.unwrap_or(Once::TOLERANCE)),
            Schedule::Interval(interval) => unmet().saturating_add(interval.tolerance()),
            Schedule::Calendar(every) => self.by_the_clock(unmet(), every.tolerance),
            Schedule::Cron(by) => self.by_the_clock(unmet(), by.max_duration),
            Schedule::Periodic(periodic) => {
                self.promised_after(reference).saturating_add(periodic.period())
            }
        }
    }

    /// Returns the first scheduled time up to `time` that has no successful run. For a periodic
    /// job, returns `time` itself, because the scheduled times of a periodic job depend on when its
    /// runs finish.
    pub(crate) fn unmet(&self, time: Timestamp, reference: Timestamp) -> Timestamp {
        match &self.schedule {
            Schedule::Once(_) | Schedule::Periodic(_) => time,
            Schedule::Interval(interval) => {
                interval.first_of_phase(time, self.promised_after(reference))
            }
            Schedule::Calendar(_) | Schedule::Cron(_) => {
                let unmet = self.endless().next_after(self.promised_after(reference));
                unmet.map_or(time, |unmet| unmet.min(time))
            }
        }
    }

    fn by_the_clock(&self, unmet: Timestamp, tolerance: Option<Span>) -> Timestamp {
        match tolerance {
            Some(tolerance) => unmet.saturating_add(tolerance),
            None => self.endless().next_after(unmet).unwrap_or(Timestamp::MAX),
        }
    }

    /// Returns the timetable without `end_at` and `max_runs`, so that a next scheduled time always
    /// exists.
    fn endless(&self) -> Timetable<'_> {
        Timetable { bounds: Bounds::default(), ..self.timetable() }
    }

    /// No deadline counts before `start_at`.
    fn promised_after(&self, reference: Timestamp) -> Timestamp {
        let tick = Span::from_micros(1);
        self.bounds.start_at.map_or(reference, |start| reference.max(start.saturating_sub(tick)))
    }

    /// Returns the latest time at which the run for the scheduled time `time` can start and still
    /// finish by `deadline`, if the run takes `average`.
    pub fn should_start_by(
        &self,
        time: Timestamp,
        deadline: Timestamp,
        average: Span,
    ) -> Timestamp {
        let should = deadline.saturating_sub(average);
        match self.schedule {
            // For a job that runs once, the deadline is for its start, so the job cannot be late
            // before its scheduled time.
            Schedule::Once(_) => should.max(time),
            _ => should,
        }
    }

    /// Returns the start window of the run for the scheduled time `time`.
    pub fn window(&self, time: Timestamp, past: &Past) -> StartWindow {
        let deadline = self.must_be_over_by(time, past.reference);
        StartWindow {
            can_start_by: self.may_start_from(time, past.average),
            should_start_by: self.should_start_by(time, deadline, past.average),
        }
    }
}
