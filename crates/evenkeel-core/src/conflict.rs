//! Checks whether a job's blackouts leave enough time to meet its deadlines. A blackout never moves
//! a deadline, so jobs with some schedules and blackouts cannot meet their deadlines.

use crate::job::Definition;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};
use crate::window::Past;

/// Maximum number of blackouts for which the deadlines are checked. The checked time is weeks or,
/// if scheduled times rarely fall into a blackout, years.
const STEPS_MAX: usize = 100;

const TICK: Span = Span::from_micros(1);

/// A run that misses its deadline because of a blackout.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlackoutConflict {
    /// The scheduled time of the run, or the time at which a periodic job becomes due.
    pub time: Timestamp,
    /// The end of the blackout.
    pub starts_at: Timestamp,
    /// The time by which the run must have succeeded or, for a job that runs once, started.
    pub deadline: Timestamp,
}

impl Definition {
    /// Returns the first run at or after the scheduled time `next` that misses its deadline because
    /// of a blackout. Assumes that all earlier runs succeed and that a worker is always free.
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
            // Only the first scheduled time in each blackout is checked, because its run waits
            // longest for the end of the blackout.
            let blackout_start = blackouts.next_start(starts_at)?;
            if let Schedule::Periodic(periodic) = &self.schedule {
                // In the worst case, the previous run starts just before the blackout.
                reference = blackout_start.saturating_sub(TICK).max(starts_at);
                time = blackout_start.max(starts_at.saturating_add(periodic.cooldown()));
            } else {
                let held_from = blackout_start.saturating_sub(margin).saturating_sub(TICK);
                let after = held_from.max(starts_at);
                let (_, last) = self.timetable().times_before(time, after.saturating_add(TICK))?;
                time = self.timetable().next_after(last)?;
                reference = time.saturating_sub(TICK);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blackout::Blackout;
    use crate::schedule::{Cron, CronSchedule, Interval, Once, Periodic};

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
    fn half_hourly_job_conflicts_with_a_blackout_of_ten_hours() {
        let job = held(every(30), "08:00", "18:00");
        let found = conflict(&job, "2026-11-16T08:16:00Z").unwrap();
        assert_eq!(found.starts_at, at("2026-11-16T18:00:00Z"));
        assert_eq!(found.deadline, at("2026-11-16T08:46:00Z"));
        // The job of this test, created in the evening, meets its deadlines until the next morning.
        let found = conflict(&job, "2026-11-16T19:16:00Z").unwrap();
        assert_eq!(found.time, at("2026-11-17T08:16:00Z"));
    }

    #[test]
    fn job_that_misses_the_blackout_or_may_wait_has_no_conflict() {
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
    fn one_time_and_periodic_jobs_are_checked() {
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
        fn conflicting_run_starts_at_the_end_of_a_blackout_after_its_deadline(
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
                // A run that waits from the first scheduled time in a blackout until the end of the
                // blackout still meets its deadline.
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
