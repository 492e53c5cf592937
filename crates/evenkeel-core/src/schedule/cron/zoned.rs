//! The times of an expression in a zone, whose clocks are changed now and then. All moments here
//! are whole seconds since 1970.
//!
//! A zone is a row of stretches in which local time is a fixed offset from UTC. Within one, the
//! times are those of a clock that is never changed, less the offset; what is particular happens
//! where two of them meet. Stretches are longer than any change of the clocks (a test of
//! `crate::zone` sees to it), so that a local time is shown twice at most, by neighbours.

use super::calendar::DAY;
use super::pattern::Pattern;
use crate::schedule::dst::{Dst, Gap, Overlap};
use crate::zone::{Even, Zone};

/// An expression in a zone.
pub(super) struct Zoned<'a> {
    pattern: &'a Pattern,
    zone: &'a Zone,
    stretches: &'a [Even],
    dst: Dst,
}

/// The local times that count in a stretch: `from..until`, less `offset` is the moment.
struct Valid {
    from: i64,
    until: i64,
    offset: i64,
}

impl<'a> Zoned<'a> {
    pub fn new(pattern: &'a Pattern, zone: &'a Zone, dst: Dst) -> Self {
        // What is in rhythm runs whenever a clock shows its time.
        let rhythm = Dst { gap: Gap::Skip, overlap: Overlap::Both };
        let dst = if pattern.rhythmic { rhythm } else { dst };
        Self { pattern, zone, stretches: zone.stretches(), dst }
    }

    /// The first time at `from` or later.
    pub fn at_or_after(&self, from: i64) -> Option<i64> {
        let mut index = self.zone.stretch_index(from);
        loop {
            let stretch = self.stretches[index];
            if from <= stretch.start && self.catches_up(index) {
                return Some(stretch.start);
            }
            let valid = self.valid(index, from, i64::MAX);
            let found = self.pattern.next_local(valid.from);
            if let Some(local) = found.filter(|local| *local < valid.until) {
                return Some(local - valid.offset);
            }
            let next = self.stretches.get(index + 1)?;
            index += 1;
            // Nothing lies between here and what was found, so the stretches before that need no
            // search of their own; unless the clocks are about to go back to before here.
            if next.start + i64::from(next.offset) >= valid.from {
                // No zone is more than a day from UTC.
                index = index.max(self.zone.stretch_index(found? - DAY));
            }
        }
    }

    /// The last time before `until`.
    pub fn before(&self, until: i64) -> Option<i64> {
        let mut index = self.zone.stretch_index(until.saturating_sub(1));
        loop {
            let valid = self.valid(index, i64::MIN, until);
            let found = self.pattern.last_local(valid.until);
            if let Some(local) = found.filter(|local| *local >= valid.from) {
                return Some(local - valid.offset);
            }
            let stretch = self.stretches[index];
            if self.catches_up(index) {
                return Some(stretch.start);
            }
            index = index.checked_sub(1)?;
            let previous = self.stretches[index];
            if stretch.start + i64::from(previous.offset) <= valid.until {
                index = index.min(self.zone.stretch_index(found? + DAY));
            }
        }
    }

    /// How many times lie in `from..until`.
    pub fn count(&self, from: i64, until: i64) -> u64 {
        if until <= from {
            return 0;
        }
        let mut count = 0;
        for index in self.zone.stretch_index(from)..self.stretches.len() {
            let start = self.stretches[index].start;
            if start >= until {
                break;
            }
            let valid = self.valid(index, from, until);
            count += self.pattern.count_local(valid.from, valid.until);
            count += u64::from(start >= from && self.is_moved(index));
        }
        count
    }

    /// Is `moment` a time only because the clocks jumped over another?
    pub fn was_moved(&self, moment: i64) -> bool {
        let index = self.zone.stretch_index(moment);
        self.stretches[index].start == moment && self.is_moved(index)
    }

    /// Does a stretch begin with a time that is not shown by its clocks?
    fn is_moved(&self, index: usize) -> bool {
        let first = self.local_start(index, index);
        self.catches_up(index) && self.pattern.count_local(first, first + 1) == 0
    }

    /// Does a stretch begin with a run because the clocks jumped over a time?
    fn catches_up(&self, index: usize) -> bool {
        if self.dst.gap == Gap::Skip || index == 0 {
            return false;
        }
        let gap = self.local_start(index, index - 1)..self.local_start(index, index);
        !gap.is_empty() && self.pattern.next_local(gap.start).is_some_and(|time| time < gap.end)
    }

    /// The local times of a stretch that count, as far as they are in `from..until`.
    fn valid(&self, index: usize, from: i64, until: i64) -> Valid {
        let stretch = self.stretches[index];
        let offset = i64::from(stretch.offset);
        let mut valid = Valid {
            from: from.max(stretch.start).saturating_add(offset),
            until: until.saturating_add(offset),
            offset,
        };
        if self.dst.overlap == Overlap::First && index > 0 {
            // From where the clocks of the previous stretch stopped.
            valid.from = valid.from.max(self.local_start(index, index - 1));
        }
        if index + 1 < self.stretches.len() {
            let until = self.local_start(index + 1, index);
            valid.until = valid.until.min(until);
            if self.dst.overlap == Overlap::Last {
                // Until where the clocks of the next stretch begin.
                valid.until = valid.until.min(self.local_start(index + 1, index + 1));
            }
        }
        valid
    }

    /// What a clock of one stretch shows when another begins.
    fn local_start(&self, beginning: usize, clock: usize) -> i64 {
        let start = self.stretches[beginning].start;
        start.saturating_add(i64::from(self.stretches[clock].offset))
    }
}
