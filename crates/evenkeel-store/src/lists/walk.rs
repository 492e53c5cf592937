//! Positions in a job list, and the page that a scan of the list collects.

use std::cmp::Ordering;

use evenkeel_core::{JobNo, Shard, Slot, Timestamp};

use super::{JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, ListIndex, SortBy};
use crate::PageRequest;

/// The index that a list is scanned with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct WalkPath {
    /// An index of the filter, or `None` for the index of the sort column.
    pub index: Option<ListIndex>,
    /// True if every job in the index passes the filter.
    pub all_pass: bool,
    /// Number of jobs in the index.
    jobs: u64,
    is_counted: bool,
}

impl WalkPath {
    /// Returns the scan over all jobs of the tenant in sort order; `all` is their number.
    pub fn all(filter: &JobFilter, sort: JobSort, all: u64) -> Self {
        let all_pass = filter.is_open() && sort.has_all();
        Self { index: None, all_pass, jobs: all, is_counted: true }
    }

    /// Switches to an index of the filter if it has the sort order of the list. `counts` contains
    /// the number of jobs in each index of the filter.
    pub fn choose(&mut self, filter: &JobFilter, sort: JobSort, counts: &[(ListIndex, u64)]) {
        let Some(index) = filter.ordered_index(sort) else { return };
        let Some((_, count)) = counts.iter().find(|(counted, _)| *counted == index) else { return };
        *self = Self {
            index: Some(index),
            all_pass: filter.is_only(index),
            jobs: *count,
            is_counted: *count <= u64::from(LIST_SCAN_MAX),
        };
    }

    /// Returns the number of jobs on all pages, and true if the number is an estimate.
    pub fn total(&self, walk: &ListWalk) -> (u64, bool) {
        if self.all_pass { (self.jobs, !self.is_counted) } else { (walk.estimate(self.jobs), true) }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPosition {
    /// The timestamp in microseconds by which the list is sorted, or 0 if it is sorted by name or
    /// creation.
    pub at: i64,
    /// Name and configuration of the job, if the list is sorted by name.
    pub name: Option<(String, String)>,
    pub no: JobNo,
}

impl ListPosition {
    pub fn cursor(&self) -> JobCursor {
        JobCursor { at: self.at, no: self.no }
    }
}

impl From<JobCursor> for ListPosition {
    fn from(cursor: JobCursor) -> Self {
        Self { at: cursor.at, name: None, no: cursor.no }
    }
}

impl JobSort {
    pub fn compare(self, one: &ListPosition, other: &ListPosition) -> Ordering {
        let rising = match self.by {
            SortBy::Created => one.no.cmp(&other.no),
            SortBy::Updated | SortBy::NextRun => (one.at, one.no).cmp(&(other.at, other.no)),
            SortBy::Name => (&one.name, one.no).cmp(&(&other.name, other.no)),
        };
        if self.descending { rising.reverse() } else { rising }
    }

    /// Returns true if an unfiltered list in this order contains all jobs of the tenant.
    pub fn has_all(self) -> bool {
        matches!(self.by, SortBy::Created | SortBy::Updated)
    }

    /// Cuts one page out of all jobs that pass the filter. Also returns the start of the next page.
    pub fn cut(
        self,
        mut passing: Vec<ListPosition>,
        after: Option<&ListPosition>,
        page: PageRequest<JobCursor>,
    ) -> (Vec<ListPosition>, Option<JobCursor>) {
        passing.retain(|place| after.is_none_or(|after| self.compare(place, after).is_gt()));
        let (offset, limit) = (page.offset as usize, page.limit as usize);
        let needed = offset.saturating_add(limit).saturating_add(1);
        if needed < passing.len() {
            // Jobs behind the requested page need not be sorted.
            passing.select_nth_unstable_by(needed - 1, |one, other| self.compare(one, other));
            passing.truncate(needed);
        }
        passing.sort_unstable_by(|one, other| self.compare(one, other));
        let mut items: Vec<ListPosition> =
            passing.into_iter().skip(offset).take(limit + 1).collect();
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().map(ListPosition::cursor).filter(|_| has_more);
        (items, next)
    }
}

/// A page that is collected by scanning a list in its sort order.
#[derive(Debug)]
pub(super) struct ListWalk {
    page: PageRequest<JobCursor>,
    to_skip: u32,
    pub items: Vec<ListPosition>,
    scanned: u64,
    passed: u64,
    last: Option<JobCursor>,
    is_full: bool,
}

impl ListWalk {
    pub fn new(page: PageRequest<JobCursor>) -> Self {
        Self {
            page,
            to_skip: page.offset,
            items: Vec::new(),
            scanned: 0,
            passed: 0,
            last: None,
            is_full: false,
        }
    }

    /// Adds the next scanned job of the list.
    pub fn push(&mut self, position: ListPosition, passes: bool) {
        if self.is_full {
            return;
        }
        if passes && self.to_skip == 0 && self.items.len() == self.page.limit as usize {
            self.is_full = true;
            return;
        }
        self.scanned += 1;
        self.last = Some(position.cursor());
        if passes {
            self.passed += 1;
            if self.to_skip > 0 {
                self.to_skip -= 1;
            } else {
                self.items.push(position);
            }
        }
    }

    /// Records that the scan has read all jobs of the list before the position `to`.
    pub fn advance(&mut self, to: JobCursor) {
        if !self.is_full {
            self.last = Some(to);
        }
    }

    /// Returns true if the scan found at least one job after the page.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the start of the next page. `is_at_end` is true if the scan reached the end of the
    /// list.
    pub fn next(&self, is_at_end: bool) -> Option<JobCursor> {
        let after =
            if self.is_full { self.items.last().map(ListPosition::cursor) } else { self.last };
        after.filter(|_| self.is_full || !is_at_end)
    }

    /// Estimates how many of `all` jobs pass the filter, from the share of the scanned jobs that
    /// passed.
    pub fn estimate(&self, all: u64) -> u64 {
        let seen = self.passed + u64::from(self.is_full);
        let share = (u128::from(all) * u128::from(self.passed)).checked_div(self.scanned.into());
        u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX).max(seen)
    }
}

/// The part of a time slot that a list by next run time reads at once: the whole slot, or one shard
/// if the slot has too many jobs. If a time slot is read shard by shard, its jobs are sorted only
/// within each shard.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotPart {
    pub slot: Slot,
    /// The shard that is read; `None` for the whole time slot.
    pub shard: Option<Shard>,
}

impl SlotPart {
    /// Returns the list position after the last job of this part of the time slot.
    pub(super) fn end(self, descending: bool) -> JobCursor {
        // The shard of a job is the last byte of its internal number.
        if descending {
            let no = i64::from(self.shard.map_or(0, |shard| shard.0));
            JobCursor { at: self.slot.start().as_micros(), no: JobNo(no) }
        } else {
            let no = (i64::MAX & !0xff) | i64::from(self.shard.map_or(u8::MAX, |shard| shard.0));
            JobCursor { at: self.slot.next().start().as_micros() - 1, no: JobNo(no) }
        }
    }

    /// Returns the unread rest of a time slot after the position `after` in a list by next run
    /// time. `is_crowded` is true if the time slot has too many jobs to be read at once.
    pub(super) fn rest_of_slot(
        after: JobCursor,
        is_crowded: bool,
        descending: bool,
    ) -> Option<Self> {
        let slot = after.slot();
        if !is_crowded {
            let whole = Self { slot, shard: None };
            return (after != whole.end(descending)).then_some(whole);
        }
        let here = Shard::of(after.no);
        let is_over = after == Self { slot, shard: Some(here) }.end(descending);
        let shard = match (is_over, descending) {
            (false, _) => Some(here.0),
            (true, false) => here.0.checked_add(1),
            (true, true) => here.0.checked_sub(1),
        };
        shard.map(|shard| Self { slot, shard: Some(Shard(shard)) })
    }

    /// Returns true if the position is in this part of the time slot.
    pub(super) fn holds(self, cursor: JobCursor) -> bool {
        cursor.slot() == self.slot && self.shard.is_none_or(|shard| shard == Shard::of(cursor.no))
    }
}

impl JobCursor {
    /// Returns the time slot that a list by next run time has reached.
    pub(super) fn slot(self) -> Slot {
        // The cursor comes from a client, so its time may be out of range.
        let (first, last) = (Timestamp::MIN.as_micros(), Timestamp::MAX.as_micros());
        Slot::of(Timestamp::from_micros(self.at.clamp(first, last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(no: i64) -> ListPosition {
        ListPosition { at: 0, name: None, no: JobNo(no) }
    }

    #[test]
    fn a_walk_continues_after_the_last_scanned_job() {
        let mut walk = ListWalk::new(PageRequest::first(2));
        for no in 1..=5 {
            walk.push(position(no), no == 3);
        }
        assert_eq!(walk.items, [position(3)]);
        assert_eq!(walk.next(false), Some(position(5).cursor()));
        assert_eq!(walk.next(true), None);
        assert_eq!(walk.estimate(100), 20);
    }

    #[test]
    fn the_page_after_a_full_page_starts_after_its_last_job() {
        let mut walk = ListWalk::new(PageRequest { offset: 1, ..PageRequest::first(2) });
        for no in 1..=9 {
            walk.push(position(no), no % 2 == 0);
        }
        assert_eq!(walk.items, [position(4), position(6)]);
        assert!(walk.is_full());
        assert_eq!(walk.next(true), Some(position(6).cursor()));
    }

    #[test]
    fn no_job_of_a_slot_part_is_after_its_end() {
        let slot = Slot(7);
        let start = slot.start().as_micros();
        let end = slot.next().start().as_micros() - 1;
        for (descending, last_at) in [(false, end), (true, start)] {
            let sort = JobSort { by: SortBy::NextRun, descending };
            let after = |part: SlotPart, at, no| {
                let end = part.end(descending);
                assert_eq!(end.slot(), slot);
                sort.compare(&ListPosition { at, name: None, no: JobNo(no) }, &end.into()).is_gt()
            };
            for no in [1, 255, 256, 0x7fff_ff03] {
                assert!(!after(SlotPart { slot, shard: None }, last_at, no));
                let shard = Some(Shard::of(JobNo(no)));
                assert!(!after(SlotPart { slot, shard }, last_at, no));
            }
        }
    }
}
