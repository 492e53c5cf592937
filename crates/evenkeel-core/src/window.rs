//! The one idea: when a schedule may start next, and by when it must.

use crate::blackout::Blackouts;
use crate::history::History;
use crate::job::{Bounds, Definition};
use crate::schedule::{Once, Schedule, Timetable};
use crate::time::{Span, Timestamp};

/// The answer every schedule gives, whatever its kind.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StartWindow {
    /// Nothing starts before this. A retry or a blackout moves it.
    pub can_start_by: Timestamp,
    /// To keep its promise it must have started by then. Nothing but the schedule moves it.
    pub should_start_by: Timestamp,
}

impl StartWindow {
    /// The same promise, not startable before `moment`.
    pub fn not_before(self, moment: Timestamp) -> Self {
        Self { can_start_by: self.can_start_by.max(moment), ..self }
    }
}

/// What of a job's past its promise depends on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Past {
    /// When the last good run began; if there was none since, when the promise began.
    pub reference: Timestamp,
    /// How long a good run takes, as far as is known.
    pub average: Span,
}

impl Definition {
    /// What its promise depends on, if it counts since `since`.
    pub fn past(&self, history: &History, since: Timestamp) -> Past {
        let good = history.last_good_start_at;
        Past {
            reference: good.map_or(since, |good| good.max(since)),
            average: self.average(history.average_good_duration),
        }
    }

    /// How long a good run takes, as far as is known: what was said, else what was `seen`.
    pub fn average(&self, seen: Option<Span>) -> Span {
        self.average_override.or(seen).unwrap_or(Span::ZERO)
    }

    /// Its times.
    pub fn timetable(&self) -> Timetable<'_> {
        let Self { schedule, timezone: zone, dst, bounds, .. } = self;
        Timetable { schedule, zone, dst: *dst, bounds: *bounds }
    }

    /// The hours in which it neither starts nor runs.
    pub fn blackouts(&self) -> Blackouts<'_> {
        Blackouts::new(&self.blackout_periods, &self.timezone)
    }

    /// The first moment from `moment` on at which it may start: in no blackout and, if it is to
    /// avoid them, not so shortly before one that a run of `average` length would meet it. What
    /// fits between no two blackouts starts all the same, or it never would.
    pub fn may_start_from(&self, moment: Timestamp, average: Span) -> Timestamp {
        let dark = self.blackouts();
        let mut start = dark.next_open(moment);
        if dark.is_empty() || !self.fits_between_blackouts(average) {
            return start;
        }
        // A day on which the clocks are changed may be too short; the next one is not.
        for _ in 0..=4 * self.blackout_periods.len() {
            match dark.next_start(start) {
                Some(closing) if closing < start.saturating_add(average) => {
                    start = dark.next_open(closing);
                }
                Some(_) | None => break,
            }
        }
        start
    }

    /// When the run for the regular time `time` starts as far as the job's own rules decide, seen at
    /// `now`: the time itself, or the end of the blackout that holds it. A start at or before `now`
    /// is due: nothing but a worker is missing. Every answer that names a job's next start names
    /// this moment.
    pub fn next_start(&self, time: Timestamp, average: Span, now: Timestamp) -> Timestamp {
        let start = self.may_start_from(time, average);
        if start > now {
            return start;
        }
        // No worker took it when it could start, and by now another blackout may hold it.
        let start_now = self.may_start_from(now, average);
        if start_now > now { start_now } else { start }
    }

    /// Is it to avoid blackouts, and can it? What just fits could start at one single moment, which
    /// nobody ever meets: it needs a minute more.
    fn fits_between_blackouts(&self, average: Span) -> bool {
        const ROOM: Span = Span::from_secs(60);
        let needed = Span::from_micros(average.as_micros().saturating_add(ROOM.as_micros()));
        self.avoid_blackout && needed <= self.blackouts().longest_open()
    }

    /// From when on it may not start any more, if it may at `moment`; `None` if it always may.
    pub fn may_start_until(&self, moment: Timestamp, average: Span) -> Option<Timestamp> {
        let dark = self.blackouts();
        let closing = dark.next_start(moment)?;
        let fits = self.fits_between_blackouts(average);
        Some(if fits { closing.saturating_sub(average).max(moment) } else { closing })
    }

    /// By when a run must be over to keep the promise of the time `time`. If an earlier time has
    /// seen no good run, its promise counts.
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

    /// The first time up to `time` that has seen no good run. The times of a periodic job follow
    /// from its ends, so it never has an earlier one.
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

    /// Its times without an end: the last time, too, has one that would follow.
    fn endless(&self) -> Timetable<'_> {
        Timetable { bounds: Bounds::default(), ..self.timetable() }
    }

    /// Before its first moment nothing is promised.
    fn promised_after(&self, reference: Timestamp) -> Timestamp {
        let tick = Span::from_micros(1);
        self.bounds.start_at.map_or(reference, |start| reference.max(start.saturating_sub(tick)))
    }

    /// By when the run for `time`, which takes `average`, must start to be over by `deadline`.
    pub fn should_start_by(
        &self,
        time: Timestamp,
        deadline: Timestamp,
        average: Span,
    ) -> Timestamp {
        let should = deadline.saturating_sub(average);
        match self.schedule {
            // What runs once promises to start: it cannot be late before its time.
            Schedule::Once(_) => should.max(time),
            _ => should,
        }
    }

    /// The window in which the run for `time` starts.
    pub fn window(&self, time: Timestamp, past: &Past) -> StartWindow {
        let deadline = self.must_be_over_by(time, past.reference);
        StartWindow {
            can_start_by: self.may_start_from(time, past.average),
            should_start_by: self.should_start_by(time, deadline, past.average),
        }
    }
}
