//! The start window, the central idea of the scheduler: for every kind of schedule, when the next
//! run may start and by when it must.

use crate::blackout::Blackouts;
use crate::history::History;
use crate::job::{Bounds, Definition};
use crate::schedule::{Once, Schedule, Timetable};
use crate::time::{Span, Timestamp};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StartWindow {
    /// The earliest start. A retry or a blackout moves it.
    pub can_start_by: Timestamp,
    /// The latest start that keeps the promise. Only the schedule moves it.
    pub should_start_by: Timestamp,
}

/// The part of a job's past that its promise depends on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Past {
    /// The start of the last successful run; if there was none since the promise began, the start
    /// of the promise.
    pub reference: Timestamp,
    /// The average duration of successful runs, if known.
    pub average: Span,
}

impl Definition {
    /// Returns what the promise depends on, if the promise counts since `since`.
    pub fn past(&self, history: &History, since: Timestamp) -> Past {
        let last_success = history.last_good_start_at;
        Past {
            reference: last_success.map_or(since, |last_success| last_success.max(since)),
            average: self.average(history.average_good_duration),
        }
    }

    /// Returns the expected duration of a successful run: the configured average, otherwise `seen`.
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

    /// Returns the first time from `moment` on at which the job may start: in no blackout and, with
    /// `avoid_blackout`, early enough that a run of `average` length ends before the next blackout.
    /// A run that is longer than every gap between blackouts starts anyway: otherwise it would
    /// never start.
    pub fn may_start_from(&self, moment: Timestamp, average: Span) -> Timestamp {
        let blackouts = self.blackouts();
        let mut start = blackouts.next_open(moment);
        if blackouts.is_empty() || !self.fits_between_blackouts(average) {
            return start;
        }
        // On a day with a clock change the gap may be too short; on the next day it is not.
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

    /// Returns when the run for the scheduled time `time` starts by the job's own rules, as of
    /// `now`: at that time, or at the end of the blackout that holds it. A start at or before `now`
    /// is due: only a worker is missing. Every part of the program that names the next start of a
    /// job uses this function.
    pub fn next_start(&self, time: Timestamp, average: Span, now: Timestamp) -> Timestamp {
        let start = self.may_start_from(time, average);
        if start > now {
            return start;
        }
        // No worker claimed the run when it could start. By now another blackout may hold it.
        let start_now = self.may_start_from(now, average);
        if start_now > now { start_now } else { start }
    }

    /// True if the job avoids blackouts and can. A run that just fits could start at one single
    /// moment only, so it needs one minute more.
    fn fits_between_blackouts(&self, average: Span) -> bool {
        const MARGIN: Span = Span::from_secs(60);
        let needed = Span::from_micros(average.as_micros().saturating_add(MARGIN.as_micros()));
        self.avoid_blackout && needed <= self.blackouts().longest_open()
    }

    /// Returns the end of the time in which the job may start, if it may at `moment`; `None` if it
    /// always may.
    pub fn may_start_until(&self, moment: Timestamp, average: Span) -> Option<Timestamp> {
        let blackouts = self.blackouts();
        let blackout_start = blackouts.next_start(moment)?;
        let fits = self.fits_between_blackouts(average);
        Some(if fits { blackout_start.saturating_sub(average).max(moment) } else { blackout_start })
    }

    /// Returns the deadline of the run for `time`. If no run has succeeded for an earlier time, the
    /// earlier deadline counts.
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

    /// Returns the first time up to `time` without a successful run. Times of a periodic job depend
    /// on the ends of its runs, so it never has an earlier one.
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

    /// The timetable without end bounds, so that even the last time has a next.
    fn endless(&self) -> Timetable<'_> {
        Timetable { bounds: Bounds::default(), ..self.timetable() }
    }

    /// Nothing is promised before `start_at`.
    fn promised_after(&self, reference: Timestamp) -> Timestamp {
        let tick = Span::from_micros(1);
        self.bounds.start_at.map_or(reference, |start| reference.max(start.saturating_sub(tick)))
    }

    /// Returns when the run for `time`, which takes `average`, must start to end by `deadline`.
    pub fn should_start_by(
        &self,
        time: Timestamp,
        deadline: Timestamp,
        average: Span,
    ) -> Timestamp {
        let should = deadline.saturating_sub(average);
        match self.schedule {
            // A job that runs once promises its start, so it cannot be late before its time.
            Schedule::Once(_) => should.max(time),
            _ => should,
        }
    }

    /// Returns the start window of the run for `time`.
    pub fn window(&self, time: Timestamp, past: &Past) -> StartWindow {
        let deadline = self.must_be_over_by(time, past.reference);
        StartWindow {
            can_start_by: self.may_start_from(time, past.average),
            should_start_by: self.should_start_by(time, deadline, past.average),
        }
    }
}
