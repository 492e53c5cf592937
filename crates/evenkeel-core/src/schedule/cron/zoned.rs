//! Finds the run times of a cron expression in a time zone with clock changes. All times in this
//! module are whole seconds since 1970.
//!
//! A time zone is a sequence of periods in which the offset from UTC is constant. Within a period
//! of constant offset, run times are computed as if clocks never changed, and the offset is
//! subtracted. Special rules are needed only at the boundaries between two periods of constant
//! offset. A period of constant offset is longer than any clock change (a test in `crate::zone`
//! checks this), so a local time occurs at most twice, in consecutive periods.

use super::calendar::DAY;
use super::pattern::Pattern;
use crate::schedule::dst::{Dst, Gap, Overlap};
use crate::zone::{ConstantOffset, Zone};

pub(super) struct Zoned<'a> {
    pattern: &'a Pattern,
    zone: &'a Zone,
    periods: &'a [ConstantOffset],
    dst: Dst,
}

/// The range `from..until` of local times at which the job may run in one period of constant
/// offset. The UTC time is the local time minus `offset`.
struct Valid {
    from: i64,
    until: i64,
    offset: i64,
}

impl<'a> Zoned<'a> {
    pub fn new(pattern: &'a Pattern, zone: &'a Zone, dst: Dst) -> Self {
        // A job whose cron expression names every hour or minute runs whenever the clock shows a
        // matching time.
        let rhythm = Dst { gap: Gap::Skip, overlap: Overlap::Both };
        let dst = if pattern.rhythmic { rhythm } else { dst };
        Self { pattern, zone, periods: zone.periods(), dst }
    }

    /// Returns the first run time at or after `from`.
    pub fn at_or_after(&self, from: i64) -> Option<i64> {
        let mut index = self.zone.period_index(from);
        loop {
            let period = self.periods[index];
            if from <= period.start && self.catches_up(index) {
                return Some(period.start);
            }
            let valid = self.valid(index, from, i64::MAX);
            let found = self.pattern.next_local(valid.from);
            if let Some(local) = found.filter(|local| *local < valid.until) {
                return Some(local - valid.offset);
            }
            let next = self.periods.get(index + 1)?;
            index += 1;
            // The search skips the periods before the local time `found`, because the cron
            // expression names no local time before `found`. The search skips no periods if the
            // next clock change sets the clock back to before the searched range.
            if next.start + i64::from(next.offset) >= valid.from {
                // The offset of every time zone is less than a day.
                index = index.max(self.zone.period_index(found? - DAY));
            }
        }
    }

    /// Returns the last run time before `until`.
    pub fn before(&self, until: i64) -> Option<i64> {
        let mut index = self.zone.period_index(until.saturating_sub(1));
        loop {
            let valid = self.valid(index, i64::MIN, until);
            let found = self.pattern.last_local(valid.until);
            if let Some(local) = found.filter(|local| *local >= valid.from) {
                return Some(local - valid.offset);
            }
            let period = self.periods[index];
            if self.catches_up(index) {
                return Some(period.start);
            }
            index = index.checked_sub(1)?;
            let previous = self.periods[index];
            if period.start + i64::from(previous.offset) <= valid.until {
                index = index.min(self.zone.period_index(found? + DAY));
            }
        }
    }

    /// Counts the run times in `from..until`.
    pub fn count(&self, from: i64, until: i64) -> u64 {
        if until <= from {
            return 0;
        }
        let mut count = 0;
        for index in self.zone.period_index(from)..self.periods.len() {
            let start = self.periods[index].start;
            if start >= until {
                break;
            }
            let valid = self.valid(index, from, until);
            count += self.pattern.count_local(valid.from, valid.until);
            count += u64::from(start >= from && self.is_moved(index));
        }
        count
    }

    /// True if a run was moved to `moment` because clocks skipped the local time of the run.
    pub fn was_moved(&self, moment: i64) -> bool {
        let index = self.zone.period_index(moment);
        self.periods[index].start == moment && self.is_moved(index)
    }

    /// True if the period of constant offset begins with a moved run, and the cron expression does
    /// not also name that local time.
    fn is_moved(&self, index: usize) -> bool {
        let first = self.local_start(index, index);
        self.catches_up(index) && self.pattern.count_local(first, first + 1) == 0
    }

    /// True if clocks skip a local time of the cron expression, so that the period begins with a
    /// run.
    fn catches_up(&self, index: usize) -> bool {
        if self.dst.gap == Gap::Skip || index == 0 {
            return false;
        }
        let gap = self.local_start(index, index - 1)..self.local_start(index, index);
        !gap.is_empty() && self.pattern.next_local(gap.start).is_some_and(|time| time < gap.end)
    }

    /// Returns the local times of one period, within `from..until`, at which the job may run.
    fn valid(&self, index: usize, from: i64, until: i64) -> Valid {
        let period = self.periods[index];
        let offset = i64::from(period.offset);
        let mut valid = Valid {
            from: from.max(period.start).saturating_add(offset),
            until: until.saturating_add(offset),
            offset,
        };
        if self.dst.overlap == Overlap::First && index > 0 {
            // The range of valid local times begins where the previous period ended, so that the
            // job runs only once at repeated local times.
            valid.from = valid.from.max(self.local_start(index, index - 1));
        }
        if index + 1 < self.periods.len() {
            let until = self.local_start(index + 1, index);
            valid.until = valid.until.min(until);
            if self.dst.overlap == Overlap::Last {
                // The range of valid local times ends where the next period begins, so that the job
                // runs only once at repeated local times.
                valid.until = valid.until.min(self.local_start(index + 1, index + 1));
            }
        }
        valid
    }

    /// Returns the local time at the start of the period `beginning`, with the offset of the period
    /// `clock`.
    fn local_start(&self, beginning: usize, clock: usize) -> i64 {
        let start = self.periods[beginning].start;
        start.saturating_add(i64::from(self.periods[clock].offset))
    }
}
