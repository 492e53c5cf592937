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
    pub at: Timestamp,
    pub moved: Option<MovedBy>,
}

const TICK: Span = Span::from_micros(1);

/// Iterates over the start times of a job. For a periodic job, the iterator returns the latest
/// possible start times.
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

    /// Skips all scheduled times before `until` without iterating over them.
    fn skip_before(&mut self, until: Timestamp) {
        let table = self.definition.timetable();
        let Some(next) = self.next.filter(|next| *next < until) else { return };
        if let Schedule::Periodic(periodic) = &self.definition.schedule {
            let count = until.since(next).as_micros().div_ceil(periodic.period().as_micros());
            self.left = self.left.saturating_sub(count);
            self.next = next.checked_add(periodic.period().saturating_mul(count));
        } else if let Some((count, last)) = table.times_before(next, until) {
            self.left = self.left.saturating_sub(count);
            self.next = table.next_after(last);
        }
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
        Some(Start { at, moved })
    }
}
