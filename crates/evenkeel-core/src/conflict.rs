//! Can a job keep its promise in spite of its blackouts? A blackout never moves the promise, so a job
//! may be sure to break it from the day it is created.

use crate::job::Definition;
use crate::schedule::{Periodic, Schedule};
use crate::time::{Span, Timestamp};
use crate::window::Past;

/// Blackouts that are looked at, at most: of times that meet one seldom, the first weeks or years.
const STEPS_MAX: usize = 100;

const TICK: Span = Span::from_micros(1);

/// A run that a blackout holds beyond the moment by which it must start.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlackoutConflict {
    /// The regular time of the run; for a periodic job, the start of the blackout at the latest.
    pub time: Timestamp,
    /// The end of the blackout.
    pub starts_at: Timestamp,
    /// By when a good run must be over; by when a job that runs once must have started.
    pub deadline: Timestamp,
}

impl Definition {
    /// The first run from the regular time `next` on whose promise a blackout breaks, if all runs
    /// before it end well and there is always a worker.
    pub fn blackout_conflict(&self, next: Timestamp, past: &Past) -> Option<BlackoutConflict> {
        let blackouts = self.blackouts();
        if blackouts.is_empty() {
            return None;
        }
        let average = past.average;
        let margin = if self.avoid_blackout { average } else { Span::ZERO };
        let (mut time, mut reference) = (next, past.reference);
        for _ in 0..STEPS_MAX {
            let starts_at = self.may_start_from(time, average);
            let deadline = self.must_be_over_by(time, reference);
            let should_start_by = self.should_start_by(time, deadline, average);
            if starts_at > time && time <= should_start_by && starts_at > should_start_by {
                return Some(BlackoutConflict { time, starts_at, deadline });
            }
            // Of the times that fall into a blackout, the first waits longest for its end.
            let closing = blackouts.next_start(starts_at)?;
            if let Schedule::Periodic(periodic) = &self.schedule {
                (time, reference) = just_before(periodic, closing, starts_at);
            } else {
                let held_from = closing.saturating_sub(margin).saturating_sub(TICK);
                let after = held_from.max(starts_at);
                let (_, last) = self.timetable().times_before(time, after.saturating_add(TICK))?;
                time = self.timetable().next_after(last)?;
                reference = time.saturating_sub(TICK);
            }
        }
        None
    }
}

/// When a periodic job is due in the blackout that begins at `closing`, and when the run before began:
/// at the best just before the blackout.
fn just_before(
    periodic: &Periodic,
    closing: Timestamp,
    starts_at: Timestamp,
) -> (Timestamp, Timestamp) {
    let reference = closing.saturating_sub(TICK).max(starts_at);
    (closing.max(starts_at.saturating_add(periodic.cooldown())), reference)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blackout::Blackout;
    use crate::schedule::{Cron, CronSchedule, Interval, Once};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn held(schedule: Schedule, start: &str, end: &str) -> Definition {
        let period = Blackout { start: start.parse().unwrap(), end: end.parse().unwrap() };
        Definition { blackout_periods: vec![period], ..Definition::noop(schedule) }
    }

    fn every(minutes: u64) -> Schedule {
        Schedule::Interval(Interval::new(Span::from_secs(60 * minutes), None).unwrap())
    }

    fn past(reference: Timestamp) -> Past {
        Past { reference, average: Span::ZERO }
    }

    fn conflict(job: &Definition, next: &str) -> Option<BlackoutConflict> {
        job.blackout_conflict(at(next), &past(at("2026-11-16T08:08:00Z")))
    }

    #[test]
    fn a_job_of_half_an_hour_cannot_keep_its_promise_over_ten_hours_of_blackout() {
        let job = held(every(30), "08:00", "18:00");
        let found = conflict(&job, "2026-11-16T08:16:00Z").unwrap();
        assert_eq!(found.starts_at, at("2026-11-16T18:00:00Z"));
        assert_eq!(found.deadline, at("2026-11-16T08:46:00Z"));
        // Created in the evening, it keeps its promise until the next morning.
        let found = conflict(&job, "2026-11-16T19:16:00Z").unwrap();
        assert_eq!(found.time, at("2026-11-17T08:16:00Z"));
    }

    #[test]
    fn a_job_whose_times_miss_the_blackout_or_may_wait_for_its_end_has_no_conflict() {
        assert_eq!(conflict(&held(every(1440), "08:00", "18:00"), "2026-11-16T19:00:00Z"), None);
        assert_eq!(conflict(&held(every(1440), "08:00", "18:00"), "2026-11-16T09:00:00Z"), None);
        assert_eq!(conflict(&Definition::noop(every(30)), "2026-11-16T08:16:00Z"), None);
        let cron = Cron::parse("0 9 * * 1").unwrap();
        let by = |max| Schedule::Cron(CronSchedule { cron: cron.clone(), max_duration: max });
        assert_eq!(conflict(&held(by(None), "08:00", "18:00"), "2026-11-16T09:00:00Z"), None);
        let strict = held(by(Some(Span::from_secs(3600))), "08:00", "18:00");
        let found = conflict(&strict, "2026-11-16T09:00:00Z").unwrap();
        assert_eq!(found.deadline, at("2026-11-16T10:00:00Z"));
    }

    #[test]
    fn jobs_that_run_once_or_by_period_are_checked_too() {
        let once = Schedule::Once(Once { at: Some(at("2026-11-17T09:00:00Z")), ..Once::NOW });
        let found = conflict(&held(once, "08:00", "18:00"), "2026-11-17T09:00:00Z").unwrap();
        assert_eq!(found.starts_at, at("2026-11-17T18:00:00Z"));
        let periodic = |hours: u64| {
            Schedule::Periodic(Periodic::new(Span::from_secs(3600 * hours), None).unwrap())
        };
        let next = "2026-11-16T19:00:00Z";
        assert!(conflict(&held(periodic(2), "08:00", "18:00"), next).is_some());
        assert_eq!(conflict(&held(periodic(24), "08:00", "18:00"), next), None);
    }

    proptest! {
        #[test]
        fn a_conflict_is_a_run_that_starts_at_the_end_of_a_blackout_and_too_late(
            minutes in 1_u64..3000, first in 0_i64..2880, hour in 0_i8..24, length in 1_i64..23,
        ) {
            let start = jiff::civil::time(hour, 0, 0, 0);
            let end = start.wrapping_add(jiff::Span::new().hours(length));
            let period = Blackout { start, end };
            let job = Definition { blackout_periods: vec![period], ..Definition::noop(every(minutes)) };
            let created = at("2026-11-16T00:00:00Z");
            let next = created.saturating_add(Span::from_secs(60 * first.unsigned_abs() + 60));
            if let Some(found) = job.blackout_conflict(next, &past(created)) {
                prop_assert!(found.time >= next);
                prop_assert!(job.blackouts().is_in_blackout(found.time));
                prop_assert!(!job.blackouts().is_in_blackout(found.starts_at));
                prop_assert!(found.starts_at > found.deadline);
            } else {
                // The first of a week's times that wait for a blackout do so within their promise.
                let mut time = next;
                for _ in 0..100 {
                    let opening = job.blackouts().next_open(time);
                    prop_assert!(opening.since(time) <= Span::from_secs(60 * minutes)
                        || opening == time
                        || job.blackouts().is_in_blackout(time.saturating_sub(Span::from_secs(60 * minutes))));
                    time = job.timetable().next_after(time).unwrap();
                }
            }
        }
    }
}
