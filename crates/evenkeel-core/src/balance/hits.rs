//! Computes the time slots in which the runs of a job fall.

use super::load_profile::{LoadProfile, Recurrence};
use crate::job::Bounds;
use crate::schedule::{Schedule, Timetable};
use crate::slot::Slot;
use crate::time::{Span, Timestamp};

/// Consecutive time slots of equal length.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    /// In microseconds since 1970.
    pub start: i64,
    /// Length of a time slot in microseconds.
    pub slot: i64,
    pub slots: usize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Hit {
    pub slot: usize,
    /// Number of runs in the time slot, in units of [`whole`](Grid::whole).
    pub times: i64,
    /// True if the time slot contains the job's first run within the [`Grid`].
    pub first: bool,
}

impl Grid {
    /// The weight of one run. If a job's run times are known less exactly than the length of a time
    /// slot, each possible time slot gets a part of the weight of one run.
    pub fn whole(self) -> i64 {
        if self.slot >= micros(Slot::LENGTH) { 1 } else { 3600 }
    }

    pub fn end(self) -> i64 {
        self.start + self.slot * self.slots as i64
    }

    /// Returns the middle of a time slot.
    pub fn middle_of(self, slot: usize) -> Timestamp {
        Timestamp::from_micros(self.start + self.slot * slot as i64 + self.slot / 2)
    }

    pub fn slot_of(self, time: i64) -> Option<usize> {
        let slot = usize::try_from((time - self.start).div_euclid(self.slot)).ok()?;
        (slot < self.slots).then_some(slot)
    }

    /// Calls `hit` in chronological order for every time slot in which jobs with this load profile
    /// run.
    pub fn visit(self, profile: &LoadProfile, mut hit: impl FnMut(Hit)) {
        let from = profile.from.map_or(self.start, |from| from.start().as_micros().max(self.start));
        match &profile.recurrence {
            Recurrence::Every { every, phase } => self.visit_every(*every, *phase, from, &mut hit),
            Recurrence::Clock { schedule, zone, dst } => {
                let bounds = Bounds::default();
                let times = Timetable { schedule, zone, dst: *dst, bounds };
                self.visit_clock(times, from, &mut hit);
            }
            Recurrence::Once(slot) => {
                let first = slot.start().as_micros().max(from);
                if let Some(slot) = self.slot_of(first) {
                    hit(Hit { slot, times: self.whole(), first: true });
                }
            }
            // The run times of a periodic job are unknown, because it may run at any time.
            Recurrence::Often(_) => {}
        }
    }

    /// Returns the time slot of the first run, at or after `from`, of a job with this load profile.
    pub fn first_of(self, profile: &LoadProfile, from: i64) -> Option<usize> {
        let from = profile.from.map_or(from, |start| start.start().as_micros().max(from));
        let time = match &profile.recurrence {
            Recurrence::Every { every, phase } => {
                from + (middle(*every, *phase) - from).rem_euclid(micros(*every))
            }
            Recurrence::Clock { schedule, zone, dst } => {
                let times = Timetable { schedule, zone, dst: *dst, bounds: Bounds::default() };
                times.next_after(Timestamp::from_micros(from - 1))?.as_micros()
            }
            Recurrence::Once(slot) => slot.start().as_micros().max(from),
            Recurrence::Often(_) => return None,
        };
        self.slot_of(time)
    }

    fn visit_every(self, every: Span, phase: u32, from: i64, hit: &mut impl FnMut(Hit)) {
        let (step, middle) = (micros(Recurrence::step(every)), middle(every, phase));
        let every = micros(every);
        if step > self.slot {
            return self.visit_steps(every, i64::from(phase) * step, step, from, hit);
        }
        let mut time = from + (middle - from).rem_euclid(every);
        let end = self.end();
        let mut first = true;
        while time < end {
            let slot = (time - self.start) / self.slot;
            let slot_end = self.start + (slot + 1) * self.slot;
            let times = if every < self.slot { (slot_end - time + every - 1) / every } else { 1 };
            hit(Hit { slot: slot as usize, times: times * self.whole(), first });
            first = false;
            time += times * every;
        }
    }

    /// Calls `hit` for all possible time slots of runs whose exact run times are unknown.
    fn visit_steps(self, every: i64, rest: i64, step: i64, from: i64, hit: &mut impl FnMut(Hit)) {
        let mut time = from - step + 1 + (rest - (from - step + 1)).rem_euclid(every);
        let mut first = true;
        while time < self.end() {
            let known = (time + step).min(time + every);
            let mut slot = (time.max(self.start) - self.start) / self.slot;
            while slot < self.slots as i64 && self.start + slot * self.slot < known {
                let begin = self.start + slot * self.slot;
                let overlap = known.min(begin + self.slot) - time.max(begin);
                let times = self.whole() * overlap / step;
                hit(Hit { slot: slot as usize, times, first });
                slot += 1;
            }
            first = false;
            time += every;
        }
    }

    fn visit_clock(self, times: Timetable<'_>, from: i64, hit: &mut impl FnMut(Hit)) {
        let next = |after: i64| match times.schedule {
            Schedule::Cron(_) | Schedule::Calendar(_) => {
                times.next_after(Timestamp::from_micros(after)).map(Timestamp::as_micros)
            }
            Schedule::Once(_) | Schedule::Interval(_) | Schedule::Periodic(_) => None,
        };
        let mut after = from - 1;
        let mut first = true;
        while let Some(time) = next(after).filter(|time| *time > after) {
            let Some(slot) = self.slot_of(time) else { return };
            let slot_end = self.start + self.slot * (slot as i64 + 1);
            let until = Timestamp::from_micros(slot_end);
            let count = times.times_before(Timestamp::from_micros(time), until);
            let count = count.map_or(1, |(count, _)| i64::try_from(count).unwrap_or(i64::MAX));
            hit(Hit { slot, times: count * self.whole(), first });
            first = false;
            after = slot_end - 1;
        }
    }
}

/// Returns the middle of the range in which the job's run times fall, because their exact second is
/// not stored.
fn middle(every: Span, phase: u32) -> i64 {
    let (every, step) = (micros(every), micros(Recurrence::step(every)));
    let rest = i64::from(phase) * step;
    rest + (every - rest).clamp(0, step) / 2
}

pub(super) fn micros(span: Span) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
