//! Computes the next start times of a job from its schedule and blackouts.

use evenkeel_core::schedule::MovedBy;
use evenkeel_core::{Definition, Schedule, Slot, Span, Timestamp, Zone};
use serde::Serialize;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NextTime {
    pub utc: Timestamp,
    /// Start time as local time in the job's time zone, with the UTC offset.
    pub local: String,
    /// Reason why the start time differs from the scheduled time: `daylight_saving` or `blackout`.
    pub moved_by: Option<&'static str>,
}

impl NextTime {
    pub(crate) fn new(start: Start, zone: &Zone) -> Self {
        Self {
            utc: start.at,
            local: zone.local_text(start.at),
            moved_by: start.moved.map(MovedBy::as_str),
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// The scheduled time.
    pub scheduled_at: Timestamp,
    pub at: Timestamp,
    pub moved: Option<MovedBy>,
}

const TICK: Span = Span::from_micros(1);

/// Maximum number of starts that are visited one by one, to count them exactly.
const STARTS_VISITED_MAX: u64 = 1_000;

/// Iterates over the start times of a job. For a periodic job, the iterator returns the latest
/// possible start times.
#[derive(Clone)]
pub(crate) struct Starts<'a> {
    definition: &'a Definition,
    average: Span,
    /// The next scheduled time.
    next: Option<Timestamp>,
    /// Number of scheduled runs that `max_runs` still allows.
    left: u64,
}

impl<'a> Starts<'a> {
    /// Creates an iterator that begins with the scheduled time `next`; `fired` is the number of
    /// earlier scheduled runs.
    pub(crate) fn new(
        definition: &'a Definition,
        average: Span,
        next: Option<Timestamp>,
        fired: u64,
    ) -> Self {
        let left = definition.bounds.max_runs.map_or(u64::MAX, |max| max.saturating_sub(fired));
        Self { definition, average, next, left }
    }

    /// Returns the time slots that contain a start time before `end`.
    pub(crate) fn slots_before(mut self, end: Timestamp) -> Vec<Slot> {
        let mut slots = Vec::new();
        while let Some(start) = self.next().filter(|start| start.at < end) {
            let slot = Slot::of(start.at);
            if slots.last() != Some(&slot) {
                slots.push(slot);
            }
            self.skip_before(slot.next().start());
        }
        slots
    }

    /// Skips all starts before `until`. A scheduled time is not skipped if its start is held back by
    /// a blackout that ends at `until` or later.
    pub(crate) fn skip_starts_before(&mut self, until: Timestamp) {
        let starts_later = |moment| self.definition.may_start_from(moment, self.average) >= until;
        let Some(next) = self.next.filter(|next| *next < until) else { return };
        if self.left < STARTS_VISITED_MAX && !self.definition.blackouts().is_empty() {
            return self.visit_starts_before(until);
        }
        let just_before = until.saturating_sub(TICK);
        let mut first_kept = until;
        if !self.definition.blackouts().is_empty() && starts_later(just_before) {
            // Later moments have later starts, so a binary search finds the first moment in the
            // blackout.
            let (mut low, mut high) = (next.as_micros(), just_before.as_micros());
            while low < high {
                let middle = low + (high - low) / 2;
                let is_later = starts_later(Timestamp::from_micros(middle));
                if is_later { high = middle } else { low = middle + 1 }
            }
            first_kept = Timestamp::from_micros(low);
        }
        self.skip_before(first_kept);
    }

    /// Skips all starts before `until` one by one, so that the runs that a blackout joins count only
    /// once against `max_runs`.
    fn visit_starts_before(&mut self, until: Timestamp) {
        let mut ahead = self.clone();
        while ahead.next().is_some_and(|start| start.at < until) {
            *self = ahead.clone();
        }
    }

    /// Skips all scheduled times before `until` without iterating over them, and returns their
    /// number.
    pub(crate) fn skip_before(&mut self, until: Timestamp) -> u64 {
        let table = self.definition.timetable();
        let Some(next) = self.next.filter(|next| *next < until) else { return 0 };
        let left = self.left;
        if let Schedule::Periodic(periodic) = &self.definition.schedule {
            let count = until.since(next).as_micros().div_ceil(periodic.period().as_micros());
            self.left = self.left.saturating_sub(count);
            self.next = next.checked_add(periodic.period().saturating_mul(count));
        } else if let Some((count, last)) = table.times_before(next, until) {
            self.left = self.left.saturating_sub(count);
            self.next = table.next_after(last);
        }
        left - self.left
    }
}

impl Iterator for Starts<'_> {
    type Item = Start;

    fn next(&mut self) -> Option<Start> {
        self.left = self.left.checked_sub(1)?;
        let due = self.next?;
        let table = self.definition.timetable();
        let at = self.definition.may_start_from(due, self.average);
        let moved = if at > due {
            Some(MovedBy::Blackout)
        } else {
            table.was_shifted(due).then_some(MovedBy::DaylightSaving)
        };
        let last = if at == due || self.definition.schedule.follows_its_end() {
            at
        } else {
            // All scheduled times of the job within one blackout result in a single run.
            table.times_before(due, at.saturating_add(TICK)).map_or(due, |(_, last)| last)
        };
        self.next = table.next_after(last);
        Some(Start { scheduled_at: due, at, moved })
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobId;
    use serde_json::json;

    use super::*;
    use crate::read::{Fields, read_timing};

    const NOON: &str = "2026-06-01T12:00:00Z";

    fn definition(document: serde_json::Value) -> Definition {
        let timing = Fields::read_object(&document, "an object", read_timing).unwrap();
        let given = timing.definition;
        let no_job = JobId(Default::default());
        let schedule = given.schedule.clone().resolved(no_job, NOON.parse().unwrap(), Some(true));
        Definition { schedule, ..given }
    }

    #[test]
    fn skipped_starts_are_those_that_a_visit_of_each_finds_before_the_time() {
        let night = json!([{"start": "22:00", "end": "06:30"}]);
        for document in [
            json!({"schedule": "7m"}),
            json!({"schedule": "20m", "blackout_periods": night}),
            json!({"schedule": "20m", "blackout_periods": night, "max_runs": 50}),
            json!({"schedule": "0 */2 * * *", "blackout_periods": night}),
            json!({"schedule": {"kind": "periodic", "period": "50m"}}),
            json!({"schedule": {"kind": "once", "at": "2026-06-01T23:00:00Z"},
                   "blackout_periods": night}),
        ] {
            let definition = definition(document.clone());
            let first = definition.timetable().first_after(NOON.parse().unwrap());
            let starts = || Starts::new(&definition, Span::ZERO, first, 0);
            for minutes in (0..3 * 1440).step_by(23).chain([600, 1110, 1109]) {
                let from: Timestamp = NOON.parse().unwrap();
                let from = from.saturating_add(Span::from_secs(60 * minutes));
                let mut skipped = starts();
                skipped.skip_starts_before(from);
                let found: Vec<_> = skipped.take(5).map(|start| start.at).collect();
                let visited = starts().skip_while(|start| start.at < from).take(5);
                let visited: Vec<_> = visited.map(|start| start.at).collect();
                assert_eq!(found, visited, "{document} from {from}");
            }
        }
    }
}
