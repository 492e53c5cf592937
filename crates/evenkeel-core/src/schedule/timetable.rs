//! The scheduled times of a job, in its time zone and within its bounds.

use super::{Dst, Schedule};
use crate::job::Bounds;
use crate::named_enum;
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

#[derive(Copy, Clone, Debug)]
pub struct Timetable<'a> {
    pub schedule: &'a Schedule,
    pub zone: &'a Zone,
    pub dst: Dst,
    pub bounds: Bounds,
}

named_enum! {
    /// Why a run starts at another time than the job's schedule names.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum MovedBy {
        /// Clocks skip the scheduled local time.
        DaylightSaving => "daylight_saving",
        /// The scheduled time is in a blackout.
        Blackout => "blackout",
    }
}

const TICK: Span = Span::from_micros(1);

impl Timetable<'_> {
    /// Returns the first scheduled time of a job that is created or restarted at `now`.
    pub fn first_after(self, now: Timestamp) -> Option<Timestamp> {
        let start = self.bounds.start_at.filter(|start| *start > now);
        let after = start.map_or(now, |start| start.saturating_sub(TICK));
        let first = match (self.schedule, start) {
            (Schedule::Once(once), _) => return Some(once.first_after(now)),
            (Schedule::Periodic(_), start) => start.unwrap_or(now),
            (Schedule::Interval(interval), Some(start)) if interval.anchor().is_none() => start,
            (Schedule::Interval(interval), _) => interval.first_after(after)?,
            (Schedule::Calendar(every), _) => every.next_after(after, self.zone, self.dst)?.0,
            (Schedule::Cron(by), _) => by.cron.next_after(after, self.zone, self.dst)?,
        };
        self.in_bounds(first)
    }

    /// Returns the next scheduled time after `scheduled`; `None` if no scheduled time follows.
    ///
    /// The next scheduled time depends only on the schedule and on the scheduled time `scheduled`.
    /// Slow runs, retries and downtime never shift later scheduled times. For a periodic job,
    /// `next_after` returns the latest possible next scheduled time.
    pub fn next_after(self, scheduled: Timestamp) -> Option<Timestamp> {
        let next = match self.schedule {
            Schedule::Once(_) => None,
            Schedule::Interval(interval) => interval.next_after(scheduled),
            Schedule::Calendar(every) => {
                every.next_after(scheduled, self.zone, self.dst).map(|(time, _)| time)
            }
            Schedule::Cron(by) => by.cron.next_after(scheduled, self.zone, self.dst),
            // Whether a periodic job runs again is decided when its run finishes. While a run is
            // active, `end_at` is used as the next scheduled time if the period would end later.
            Schedule::Periodic(periodic) => {
                let end = self.bounds.end_at.unwrap_or(Timestamp::MAX);
                let latest = periodic.next_after(scheduled).map(|next| next.min(end));
                latest.filter(|next| *next > scheduled)
            }
        };
        next.and_then(|next| self.in_bounds(next))
    }

    fn in_bounds(self, time: Timestamp) -> Option<Timestamp> {
        self.bounds.end_at.is_none_or(|end| time <= end).then_some(time)
    }

    /// Returns the number of scheduled times in `from..until`, and the last of these times. `from`
    /// must be a scheduled time.
    pub fn times_before(self, from: Timestamp, until: Timestamp) -> Option<(u64, Timestamp)> {
        if until <= from {
            return None;
        }
        let until = self.bounds.end_at.map_or(until, |end| until.min(end.saturating_add(TICK)));
        let until = until.max(from.saturating_add(TICK));
        Some(match self.schedule {
            Schedule::Once(_) | Schedule::Periodic(_) => (1, from),
            Schedule::Interval(interval) => interval.times_before(from, until),
            Schedule::Calendar(_) => {
                let (mut count, mut last) = (1, from);
                // Scheduled times of a calendar interval are days apart, so even the scheduled
                // times of 100 years are counted quickly.
                while let Some(next) = self.next_after(last).filter(|next| *next < until) {
                    (count, last) = (count + 1, next);
                }
                (count, last)
            }
            Schedule::Cron(by) => {
                let after = from.saturating_add(TICK);
                let later = by.cron.count(after, until, self.zone, self.dst);
                let last = by.cron.last_before(until, self.zone, self.dst);
                (later + 1, last.map_or(from, |last| last.max(from)))
            }
        })
    }

    /// Returns the `n`-th scheduled time after `from`; `from` itself is number 0. The range
    /// `from..until` must contain more than `n` scheduled times.
    pub fn nth_after(self, from: Timestamp, n: u64, until: Timestamp) -> Timestamp {
        if let Schedule::Interval(interval) = self.schedule {
            return from.saturating_add(interval.every().saturating_mul(n));
        }
        // The binary search finds the earliest moment by which `n` + 1 scheduled times have passed.
        let (mut low, mut high) = (from.as_micros(), until.as_micros());
        while low < high {
            let middle = low + (high - low) / 2;
            let until = Timestamp::from_micros(middle).saturating_add(TICK);
            let come = self.times_before(from, until).map_or(0, |(count, _)| count);
            if come > n { high = middle } else { low = middle + 1 }
        }
        Timestamp::from_micros(low)
    }

    /// True if a clock change moved the scheduled time `time`.
    pub fn was_shifted(self, time: Timestamp) -> bool {
        match self.schedule {
            Schedule::Cron(by) => by.cron.was_shifted(time, self.zone, self.dst),
            Schedule::Calendar(every) => every
                .next_after(time.saturating_sub(TICK), self.zone, self.dst)
                .is_some_and(|(next, moved)| next == time && moved),
            Schedule::Once(_) | Schedule::Interval(_) | Schedule::Periodic(_) => false,
        }
    }
}
