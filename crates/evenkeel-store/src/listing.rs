//! How a list of jobs is made, once for both databases.
//!
//! If an index leads to few enough jobs, all of them are looked at, sorted here and counted. If
//! there are too many, the list is walked in its order and those that do not pass are left out; as
//! many pass then that the walk soon has a page.

use std::cmp::Ordering;

use evenkeel_core::condition::Level;
use evenkeel_core::status::JobStatus;
use evenkeel_core::{About, Definition, JobNo, Shard, Slot, Span, Timestamp};
use serde_json::Value;

use crate::{Activity, JobCursor, JobFilter, JobSort, LIST_SCAN_MAX, PageRequest, SortBy};

/// Of a job's metadata, so many values can be asked for.
pub const LABELS_MAX: usize = 64;

/// A key or value of metadata that is longer than so many bytes cannot be asked for.
pub const LABEL_BYTES_MAX: usize = 255;

/// What a job's metadata hold at the top, as filters ask for it: texts as they are, numbers and
/// truth values as JSON writes them.
pub fn labels_of(about: &About) -> Vec<(String, String)> {
    let Value::Object(metadata) = &about.metadata else { return Vec::new() };
    let label = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let fits = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.contains('\0');
        (fits(key) && fits(&value)).then(|| (key.clone(), value))
    };
    metadata.iter().filter_map(label).take(LABELS_MAX).collect()
}

/// An index that leads to some jobs of a tenant, among them all that pass a filter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ListIndex {
    /// Those with an attempt that runs.
    Running,
    /// Those with an attempt that waits, those that are due, and those that were never started and
    /// have no next time.
    Pending,
    /// Those with an attempt that waits.
    Waiting,
    /// Those that are not well.
    AtRisk,
    /// Those with the first of the metadata.
    Label,
    /// Those about the source.
    Source,
    /// Those that name the target.
    Target,
    /// Those that are paused.
    Paused,
    /// Those without a next time, and those that somebody ended.
    Ended,
    /// Those with a next time in the range.
    NextTimes,
    /// Those whose name starts so.
    Name,
    /// Those about a source that starts so.
    SourcePrefix,
    /// All of the tenant.
    All,
}

/// Where an index leads to the jobs in their order, no more than so many are sorted instead.
const SORTED_MAX: u32 = 1_000;

impl JobFilter {
    /// An index that leads to jobs that pass in the order of the list.
    pub fn ordered_route(&self, sort: JobSort) -> Option<ListIndex> {
        let routes = self.routes().into_iter();
        let mut ordered = routes.filter(|route| {
            matches!(
                route,
                ListIndex::Label | ListIndex::Source | ListIndex::Target | ListIndex::Paused
            )
        });
        ordered.next().filter(|_| sort.by == SortBy::Created)
    }

    /// A route that leads to no more jobs than this is taken, and all of them are sorted.
    pub fn sorted_max(&self, sort: JobSort) -> u32 {
        if self.ordered_route(sort).is_some() { SORTED_MAX } else { LIST_SCAN_MAX }
    }

    /// Do all pass that the route leads to?
    pub fn is_only(&self, route: ListIndex) -> bool {
        let mut rest = self.clone();
        match route {
            ListIndex::Label if rest.metadata.len() == 1 => rest.metadata.clear(),
            ListIndex::Source => rest.source_id = None,
            ListIndex::Target => rest.target = None,
            ListIndex::Paused => rest.status = None,
            _ => {}
        }
        rest.is_open()
    }

    /// Does it let everything pass?
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// What leads to the jobs that pass, first what leads to few.
    pub fn routes(&self) -> Vec<ListIndex> {
        let by_status = match self.status {
            Some(JobStatus::Running) => Some(ListIndex::Running),
            Some(JobStatus::Pending) => Some(ListIndex::Pending),
            Some(JobStatus::Paused) => Some(ListIndex::Paused),
            Some(JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled) => {
                Some(ListIndex::Ended)
            }
            Some(JobStatus::Scheduled) | None => None,
        };
        let by_going_on = self.active_attempts.map(|active_attempts| match active_attempts {
            Activity::Waits => ListIndex::Waiting,
            Activity::Runs => ListIndex::Running,
        });
        let at_risk = self.condition.is_some_and(|level| level != Level::Ok);
        let in_range = self.next_from.is_some() || self.next_before.is_some();
        let routes = [
            by_status,
            by_going_on,
            at_risk.then_some(ListIndex::AtRisk),
            (!self.metadata.is_empty()).then_some(ListIndex::Label),
            self.target.is_some().then_some(ListIndex::Target),
            self.source_id.is_some().then_some(ListIndex::Source),
            in_range.then_some(ListIndex::NextTimes),
            self.name_prefix.is_some().then_some(ListIndex::Name),
            self.source_prefix.is_some().then_some(ListIndex::SourcePrefix),
            Some(ListIndex::All),
        ];
        routes.into_iter().flatten().collect()
    }
}

/// The state at `now` of a job that is due and of which nothing waits or runs, as far as its
/// definition decides: the databases cannot tell whether a blackout holds it. `seen` is the average
/// duration of its good runs. A definition that cannot be read holds nothing back.
pub fn status_when_due(
    definition: &str,
    next_at: Timestamp,
    seen: Option<Span>,
    now: Timestamp,
) -> JobStatus {
    let is_held = serde_json::from_str::<Definition>(definition).is_ok_and(|definition| {
        definition.next_start(next_at, definition.average(seen), now) > now
    });
    if is_held { JobStatus::Scheduled } else { JobStatus::Pending }
}

/// What was found along the routes of a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexScan {
    /// All that pass.
    All(Vec<ListPosition>),
    /// Every route leads to too many; to how many is counted up to one more than anybody looks at.
    TooMany(Vec<(ListIndex, u64)>),
}

/// What a list is walked along.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WalkPath {
    /// A route, or else the index of the order.
    pub route: Option<ListIndex>,
    /// It leads to what passes and nothing else.
    pub all_pass: bool,
    /// To so many jobs.
    of: u64,
    is_counted: bool,
}

impl WalkPath {
    /// Along the order of the list, in which the tenant has `all` jobs.
    pub fn all(filter: &JobFilter, sort: JobSort, all: u64) -> Self {
        let all_pass = filter.is_open() && sort.has_all();
        Self { route: None, all_pass, of: all, is_counted: true }
    }

    /// Takes the route that leads through the list in its order, if there is one.
    pub fn choose(&mut self, filter: &JobFilter, sort: JobSort, counts: &[(ListIndex, u64)]) {
        let Some(route) = filter.ordered_route(sort) else { return };
        let Some((_, count)) = counts.iter().find(|(counted, _)| *counted == route) else { return };
        *self = Self {
            route: Some(route),
            all_pass: filter.is_only(route),
            of: *count,
            is_counted: *count <= u64::from(LIST_SCAN_MAX),
        };
    }

    /// How many there are on all pages, and whether that is an estimate.
    pub fn total(&self, walk: &ListWalk) -> (u64, bool) {
        if self.all_pass { (self.of, !self.is_counted) } else { (walk.estimate(self.of), true) }
    }
}

/// Where a job stands in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPosition {
    /// What the list is ordered by, if that is a time; else 0.
    pub at: i64,
    /// Its name and configuration, if the list is ordered by those.
    pub name: Option<(String, String)>,
    /// The job.
    pub no: JobNo,
}

impl ListPosition {
    /// What comes back as the start of the next page.
    pub fn cursor(&self) -> JobCursor {
        JobCursor { at: self.at, no: self.no }
    }
}

impl JobSort {
    /// Which of two jobs comes first.
    pub fn compare(self, one: &ListPosition, other: &ListPosition) -> Ordering {
        let rising = match self.by {
            SortBy::Created => one.no.cmp(&other.no),
            SortBy::Updated | SortBy::NextRun => (one.at, one.no).cmp(&(other.at, other.no)),
            SortBy::Name => (&one.name, one.no).cmp(&(&other.name, other.no)),
        };
        if self.descending { rising.reverse() } else { rising }
    }

    /// Are all of the tenant's jobs in it?
    pub fn has_all(self) -> bool {
        matches!(self.by, SortBy::Created | SortBy::Updated)
    }

    /// A page of all jobs that pass: what is on it, and the start of the next.
    pub fn cut(
        self,
        mut passing: Vec<ListPosition>,
        after: Option<&ListPosition>,
        page: PageRequest<JobCursor>,
    ) -> (Vec<ListPosition>, Option<JobCursor>) {
        passing.retain(|place| after.is_none_or(|after| self.compare(place, after).is_gt()));
        let (offset, limit) = (page.offset as usize, page.limit as usize);
        let wanted = offset.saturating_add(limit).saturating_add(1);
        if wanted < passing.len() {
            // The rest need not be in order.
            passing.select_nth_unstable_by(wanted - 1, |one, other| self.compare(one, other));
            passing.truncate(wanted);
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

/// A page that is found by walking through a list in its order.
#[derive(Debug)]
pub struct ListWalk {
    page: PageRequest<JobCursor>,
    to_leave_out: u32,
    /// What is on it so far.
    pub items: Vec<ListPosition>,
    looked_at: u64,
    passed: u64,
    last: Option<JobCursor>,
    is_full: bool,
}

impl ListWalk {
    /// Begins one.
    pub fn new(page: PageRequest<JobCursor>) -> Self {
        Self {
            page,
            to_leave_out: page.offset,
            items: Vec::new(),
            looked_at: 0,
            passed: 0,
            last: None,
            is_full: false,
        }
    }

    /// Looks at the next job of the list; whether it passes was decided.
    pub fn look(&mut self, place: ListPosition, passes: bool) {
        if self.is_full {
            return;
        }
        if passes && self.to_leave_out == 0 && self.items.len() == self.page.limit as usize {
            self.is_full = true;
            return;
        }
        self.looked_at += 1;
        self.last = Some(place.cursor());
        if passes {
            self.passed += 1;
            if self.to_leave_out > 0 {
                self.to_leave_out -= 1;
            } else {
                self.items.push(place);
            }
        }
    }

    /// Looked at jobs that are not of the list, up to this place.
    pub fn pass_by(&mut self, up_to: JobCursor) {
        if !self.is_full {
            self.last = Some(up_to);
        }
    }

    /// Is there one more than fits?
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Where the next page starts, if there is one. `is_at_end`: nothing is left to look at.
    pub fn next(&self, is_at_end: bool) -> Option<JobCursor> {
        let after =
            if self.is_full { self.items.last().map(ListPosition::cursor) } else { self.last };
        after.filter(|_| self.is_full || !is_at_end)
    }

    /// About how many of `all` pass, if as many do as among those that were looked at.
    pub fn estimate(&self, all: u64) -> u64 {
        let seen = self.passed + u64::from(self.is_full);
        let share = (u128::from(all) * u128::from(self.passed)).checked_div(self.looked_at.into());
        u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX).max(seen)
    }
}

/// The part of a slot that a walk by next times looks at in one piece: all of it, or if it holds
/// too many, one shard, in which case the order is only right within each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotPart {
    /// The slot.
    pub slot: Slot,
    /// One shard of it, or all.
    pub shard: Option<Shard>,
}

impl SlotPart {
    /// The place after everything in it, in its direction.
    pub fn end(self, descending: bool) -> JobCursor {
        // A job's shard is the last byte of its number.
        if descending {
            let no = i64::from(self.shard.map_or(0, |shard| shard.0));
            JobCursor { at: self.slot.start().as_micros(), no: JobNo(no) }
        } else {
            let no = (i64::MAX & !0xff) | i64::from(self.shard.map_or(u8::MAX, |shard| shard.0));
            JobCursor { at: self.slot.next().start().as_micros() - 1, no: JobNo(no) }
        }
    }
}

impl SlotPart {
    /// What is left of a slot after a place in a list by next times, if anything is. `is_crowded`:
    /// it holds too many to be looked at in one piece.
    pub fn rest_of_slot(after: JobCursor, is_crowded: bool, descending: bool) -> Option<Self> {
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

    /// Is the place in it?
    pub fn holds(self, cursor: JobCursor) -> bool {
        cursor.slot() == self.slot && self.shard.is_none_or(|shard| shard == Shard::of(cursor.no))
    }
}

impl JobCursor {
    /// The slot that a list by next times has come to.
    pub fn slot(self) -> Slot {
        // Whoever makes one up gets nowhere, but not out of bounds either.
        let (first, last) = (Timestamp::MIN.as_micros(), Timestamp::MAX.as_micros());
        Slot::of(Timestamp::from_micros(self.at.clamp(first, last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(no: i64) -> ListPosition {
        ListPosition { at: 0, name: None, no: JobNo(no) }
    }

    #[test]
    fn a_walk_goes_on_after_what_it_looked_at_last() {
        let mut walk = ListWalk::new(PageRequest::first(2));
        for no in 1..=5 {
            walk.look(place(no), no == 3);
        }
        assert_eq!(walk.items, [place(3)]);
        assert_eq!(walk.next(false), Some(place(5).cursor()));
        assert_eq!(walk.next(true), None);
        assert_eq!(walk.estimate(100), 20);
    }

    #[test]
    fn a_full_page_goes_on_after_its_last_job() {
        let mut walk = ListWalk::new(PageRequest { offset: 1, ..PageRequest::first(2) });
        for no in 1..=9 {
            walk.look(place(no), no % 2 == 0);
        }
        assert_eq!(walk.items, [place(4), place(6)]);
        assert!(walk.is_full());
        assert_eq!(walk.next(true), Some(place(6).cursor()));
    }

    #[test]
    fn scalars_at_the_top_of_metadata_are_labels() {
        let metadata = serde_json::json!({
            "text": "a b", "number": 1.5, "yes": true, "none": null, "list": [1], "map": {"x": 1},
            "long": "x".repeat(LABEL_BYTES_MAX + 1), "nul": "\u{0}",
        });
        let mut labels = labels_of(&About { metadata, ..About::default() });
        labels.sort();
        let expected = [("number", "1.5"), ("text", "a b"), ("yes", "true")];
        assert_eq!(labels, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn nothing_of_a_piece_comes_after_its_end() {
        let slot = Slot(7);
        let start = slot.start().as_micros();
        let end = slot.next().start().as_micros() - 1;
        for (descending, last_at) in [(false, end), (true, start)] {
            let sort = JobSort { by: SortBy::NextRun, descending };
            let after = |piece: SlotPart, at, no| {
                let end = piece.end(descending);
                let end = ListPosition { at: end.at, name: None, no: end.no };
                assert_eq!(end.cursor().slot(), slot);
                sort.compare(&ListPosition { at, name: None, no: JobNo(no) }, &end).is_gt()
            };
            for no in [1, 255, 256, 0x7fff_ff03] {
                assert!(!after(SlotPart { slot, shard: None }, last_at, no));
                let shard = Some(Shard::of(JobNo(no)));
                assert!(!after(SlotPart { slot, shard }, last_at, no));
            }
        }
    }
}
