//! Lists of jobs: filters, sort orders, and the paging algorithm that all databases share.
//!
//! If an index of a filter finds few enough jobs, all of them are read, filtered, sorted and
//! counted. If every index finds too many jobs, the list is scanned in its sort order and jobs that
//! do not pass the filter are skipped. A filter whose indexes all find many jobs is usually passed
//! by many jobs, so the scan soon fills a page.
//!
//! A search index finds jobs that may match a search; the program checks the text of each of them.

mod counts;
mod filter;
mod index;
mod search;
mod walk;

pub use counts::JobCounts;
pub use filter::{
    Activity, JobFilter, LABEL_BYTES_MAX, LABELS_MAX, ListQuery, ListValue, ListedJob, labels_of,
};
pub use index::{FindSection, LIST_SECTIONS, ListIndex, passing_statement};
pub use search::{SearchedJob, UNINDEXED_SEARCHED, changes_text};
pub use walk::{ListPosition, SlotPart};

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use evenkeel_core::status::JobStatus;
use evenkeel_core::{Definition, JobNo, Shard, Slot, Span, Timestamp};

use crate::{Job, Page, PageRequest};
use index::walk_statement;
use search::is_common;
use walk::{ListWalk, WalkPath};

/// Maximum number of jobs that are scanned for one page if no index finds few enough jobs.
pub const LIST_SCAN_MAX: u32 = 10_000;

/// Maximum number of list items that are counted one by one for a total.
pub const COUNTED_MAX: u32 = 10_000;

/// Number of jobs that one step of a filtered scan reads.
const STEP: u32 = 1_000;

/// Maximum number of time slots, or parts of time slots, that are read for one page of a list by
/// next run time.
const SLOT_PARTS_MAX: u32 = 64;

/// A prefix followed by this character is an upper bound, in sort order, of all texts with that
/// prefix.
const LAST_CHARACTER: char = char::MAX;

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SortBy {
    #[default]
    Created,
    /// By the time at which a command last changed the job.
    Updated,
    /// By name; jobs without a name are not listed.
    Name,
    /// By next scheduled time; jobs without a next scheduled time are not listed.
    NextRun,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSort {
    pub by: SortBy,
    pub descending: bool,
}

/// The start of a page in a list of jobs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct JobCursor {
    /// The timestamp in microseconds by which the list is sorted, or 0 if it is sorted by name or
    /// creation.
    pub at: i64,
    /// The last job of the previous page. A list by name continues after the current name of the
    /// last job; the list ends if that job no longer has a name.
    pub no: JobNo,
}

/// A due job with blackouts, which SQL cannot evaluate.
#[derive(Clone, Debug)]
pub struct HeldJob {
    pub definition: String,
    pub next_at: Timestamp,
    /// Average duration of the job's successful runs.
    pub average: Option<Span>,
    pub now: Timestamp,
}

impl HeldJob {
    /// Returns the status of the job, assuming that it has no active attempts. A definition that
    /// cannot be parsed counts as having no blackouts.
    pub fn status(&self) -> JobStatus {
        let definition = serde_json::from_str::<Definition>(&self.definition);
        let is_held = definition.is_ok_and(|definition| {
            let average = definition.average(self.average);
            definition.next_start(self.next_at, average, self.now) > self.now
        });
        if is_held { JobStatus::Scheduled } else { JobStatus::Pending }
    }
}

/// A row that the SQL section `list_jobs_passes` returns.
#[derive(Debug)]
pub struct ListRow {
    pub no: JobNo,
    pub updated_at: i64,
    pub next_at: Option<i64>,
    /// Name and configuration of the job; stores may omit them if the list is not sorted by name.
    pub name: Option<(String, String)>,
    /// Whether the job passes the filter according to SQL.
    pub passes: bool,
    /// Set if the status of the job also depends on its blackouts.
    pub held: Option<HeldJob>,
    /// Set if the filter searches the text of the job.
    pub searched: Option<SearchedJob>,
}

impl ListRow {
    /// Returns the position of the job in the list, and whether the job passes the filter.
    pub fn listed(self, query: &ListQuery<'_>) -> (ListPosition, bool) {
        let is_in_status = self.held.is_none_or(|held| Some(held.status()) == query.filter.status);
        let at = match query.sort.by {
            SortBy::Updated => self.updated_at,
            SortBy::NextRun => self.next_at.unwrap_or(0),
            SortBy::Created | SortBy::Name => 0,
        };
        let name = self.name.filter(|_| query.sort.by == SortBy::Name);
        let passes = self.passes && is_in_status;
        // Only the text of jobs that pass all other filters is searched.
        let is_found = query.filter.search.as_ref().filter(|_| passes).is_none_or(|search| {
            let text = self.searched.and_then(|searched| searched.text());
            text.is_some_and(|text| search.matches(&text))
        });
        (ListPosition { at, name, no: self.no }, passes && is_found)
    }
}

/// The jobs that pass the filter, found with one index.
#[derive(Debug)]
pub enum IndexScan {
    All(Vec<ListPosition>),
    /// The index has too many rows; contains their number, counted up to [`LIST_SCAN_MAX`] + 1.
    TooMany(u64),
}

/// The database queries that a store provides for lists. All queries but [`scan`](Self::scan) take
/// their parameters by name from [`ListQuery::value`].
#[expect(async_fn_in_trait, reason = "the stores choose whether their futures are Send")]
pub trait ListProbe {
    type Error;

    fn query(&self) -> ListQuery<'_>;

    fn find_section(&self) -> FindSection;

    /// Returns the stored number of the tenant's jobs.
    async fn total(&self) -> Result<u64, Self::Error>;

    /// Returns the name and configuration of a job of the tenant; `None` if the job has no name.
    async fn name_of(&self, job: JobNo) -> Result<Option<(String, String)>, Self::Error>;

    /// Reads all jobs of an index, unless it has more than `max` rows.
    async fn scan(&self, index: ListIndex, max: u32) -> Result<IndexScan, Self::Error>;

    /// Runs [`passing_statement`] on the jobs that the SQL text `jobs` selects. The store may
    /// return the rows in any order.
    async fn rows(
        &self,
        jobs: &str,
        step: &[(&str, ListValue)],
    ) -> Result<Vec<(ListPosition, bool)>, Self::Error>;

    /// Returns the first time slot from `from` on in which a job of any tenant has its next
    /// scheduled time. For a descending list, the search for a time slot goes backwards from
    /// `from`.
    async fn next_slot(&self, from: i32) -> Result<Option<i32>, Self::Error>;

    /// Counts the jobs of all tenants in a part of a time slot, up to [`LIST_SCAN_MAX`] + 1.
    async fn slot_size(&self, part: SlotPart) -> Result<u64, Self::Error>;

    /// Reads jobs in the order of `positions`, without jobs that were deleted in the meantime.
    async fn load(&self, positions: &[ListPosition]) -> Result<Vec<Job>, Self::Error>;
}

/// Reads one page of a job list. See [`JobStore::list_jobs`](crate::JobStore::list_jobs).
pub async fn list_jobs<P: ListProbe>(
    probe: &P,
    page: PageRequest<JobCursor>,
) -> Result<Page<Job, JobCursor>, P::Error> {
    let ListQuery { filter, sort, .. } = probe.query();
    let all = probe.total().await?;
    let mut after = page.after.map(ListPosition::from);
    if let Some(position) = &mut after
        && sort.by == SortBy::Name
    {
        position.name = probe.name_of(position.no).await?;
        if position.name.is_none() {
            let items = Vec::new();
            return Ok(Page { items, total: all, total_is_estimate: true, next: None });
        }
    }
    let mut path = WalkPath::all(filter, sort, all);
    if !path.all_pass {
        match scan_indexes(probe, all).await? {
            Ok(passing) => {
                let total = passing.len() as u64;
                let (positions, next) = sort.cut(passing, after.as_ref(), page);
                let items = probe.load(&positions).await?;
                return Ok(Page { items, total, total_is_estimate: false, next });
            }
            Err(counts) => path.choose(filter, sort, &counts),
        }
    }
    let (walk, is_at_end) = match sort.by {
        SortBy::NextRun => walk_by_next_time(probe, page).await?,
        SortBy::Created | SortBy::Updated | SortBy::Name => {
            walk_by_index(probe, page, after, path).await?
        }
    };
    let (total, total_is_estimate) = path.total(&walk);
    let items = probe.load(&walk.items).await?;
    Ok(Page { items, total, total_is_estimate, next: walk.next(is_at_end) })
}

/// Number of rows in each index of a filter.
type IndexCounts = Vec<(ListIndex, u64)>;

/// Returns all jobs that pass the filter if an index finds few enough jobs, else the row counts of
/// the indexes.
async fn scan_indexes<P: ListProbe>(
    probe: &P,
    all: u64,
) -> Result<Result<Vec<ListPosition>, IndexCounts>, P::Error> {
    let ListQuery { filter, sort, .. } = probe.query();
    let max = filter.sorted_max(sort);
    let mut counts = Vec::new();
    for index in filter.indexes() {
        if index == ListIndex::All && all > u64::from(max)
            || index == ListIndex::Search && is_common(probe, all).await?
        {
            continue;
        }
        match probe.scan(index, max).await? {
            IndexScan::All(passing) => return Ok(Ok(passing)),
            IndexScan::TooMany(count) => counts.push((index, count)),
        }
    }
    Ok(Err(counts))
}

/// Scans an index that has the sort order of the list. Also returns true if the scan reached the
/// end of the list.
async fn walk_by_index<P: ListProbe>(
    probe: &P,
    page: PageRequest<JobCursor>,
    mut after: Option<ListPosition>,
    path: WalkPath,
) -> Result<(ListWalk, bool), P::Error> {
    let query = probe.query();
    let jobs = walk_statement(probe.find_section(), query.sort, path.index);
    // If all jobs pass the filter, the database can skip the jobs before the offset.
    let (mut skipped, offset) = if path.all_pass { (page.offset, 0) } else { (0, page.offset) };
    let mut walk = ListWalk::new(PageRequest { offset, ..page });
    let step = if path.all_pass { page.limit + 1 } else { STEP };
    for _ in 0..LIST_SCAN_MAX / STEP {
        let start = walk_start(&query, after.as_ref(), step + 1, skipped);
        let found = probe.rows(&jobs, &start).await?;
        let is_at_end = found.len() <= step as usize;
        let found = in_order(found, query.sort, after.as_ref());
        after = found.last().map(|(position, _)| position.clone()).or(after);
        for (position, passes) in found {
            if is_beyond(query.filter, &position) {
                return Ok((walk, true));
            }
            walk.push(position, passes);
        }
        if walk.is_full() || is_at_end {
            return Ok((walk, is_at_end));
        }
        skipped = 0;
    }
    Ok((walk, false))
}

fn in_order(
    mut found: Vec<(ListPosition, bool)>,
    sort: JobSort,
    after: Option<&ListPosition>,
) -> Vec<(ListPosition, bool)> {
    found.retain(|(position, _)| after.is_none_or(|after| sort.compare(position, after).is_gt()));
    found.sort_unstable_by(|(one, _), (other, _)| sort.compare(one, other));
    found
}

/// In a list by name, returns true if neither this job nor any later job has the name prefix of the
/// filter.
fn is_beyond(filter: &JobFilter, position: &ListPosition) -> bool {
    match (&filter.name_prefix, &position.name) {
        (Some(prefix), Some((name, _))) => !name.starts_with(prefix),
        _ => false,
    }
}

/// Returns the SQL parameters of one step of a scan: where it starts and how many jobs it reads.
fn walk_start(
    query: &ListQuery<'_>,
    after: Option<&ListPosition>,
    limit: u32,
    offset: u32,
) -> [(&'static str, ListValue); 6] {
    let descending = query.sort.descending;
    let first = if descending { i64::MAX } else { i64::MIN };
    let (at, no) = after.map_or((first, first), |position| (position.at, position.no.0));
    let prefix = query.filter.name_prefix.clone().unwrap_or_default();
    let first = if descending {
        (format!("{prefix}{LAST_CHARACTER}"), LAST_CHARACTER.to_string())
    } else {
        (prefix, String::new())
    };
    let (name, configuration) = after.and_then(|position| position.name.clone()).unwrap_or(first);
    [
        ("after_at", ListValue::Int(Some(at))),
        ("after_no", ListValue::Int(Some(no))),
        ("after_name", ListValue::Text(Some(name))),
        ("after_configuration", ListValue::Text(Some(configuration))),
        ("limit", ListValue::Int(Some(limit.into()))),
        ("offset", ListValue::Int(Some(offset.into()))),
    ]
}

/// Scans a list by next run time, one time slot after the other. Also returns true if the scan
/// reached the end of the list.
async fn walk_by_next_time<P: ListProbe>(
    probe: &P,
    page: PageRequest<JobCursor>,
) -> Result<(ListWalk, bool), P::Error> {
    let sort = probe.query().sort;
    let jobs = probe.find_section()("list_jobs_in_slot");
    let mut walk = ListWalk::new(page);
    let (mut scanned, mut cursor) = (0, page.after);
    for _ in 0..SLOT_PARTS_MAX {
        let Some(part) = next_part(probe, cursor).await? else { return Ok((walk, true)) };
        let step = [
            ("slot", ListValue::Int(Some(part.slot.0.into()))),
            ("shard", ListValue::Int(part.shard.map(|shard| shard.0.into()))),
        ];
        let found = probe.rows(jobs, &step).await?;
        let after = cursor.filter(|cursor| part.holds(*cursor)).map(ListPosition::from);
        for (position, passes) in in_order(found, sort, after.as_ref()) {
            walk.push(position, passes);
        }
        let end = part.end(sort.descending);
        walk.advance(end);
        scanned += probe.slot_size(part).await?;
        if walk.is_full() || scanned >= u64::from(LIST_SCAN_MAX) {
            break;
        }
        cursor = Some(end);
    }
    Ok((walk, false))
}

/// Returns the time slot, or part of a time slot, that is read after `cursor` for a list by next
/// run time.
async fn next_part<P: ListProbe>(
    probe: &P,
    cursor: Option<JobCursor>,
) -> Result<Option<SlotPart>, P::Error> {
    let ListQuery { filter, sort: JobSort { descending, .. }, .. } = probe.query();
    if let Some(cursor) = cursor {
        let is_crowded = is_crowded(probe, cursor.slot()).await?;
        if let Some(rest) = SlotPart::rest_of_slot(cursor, is_crowded, descending) {
            return Ok(Some(rest));
        }
    }
    let bound = |at: Option<Timestamp>, open: i32| at.map_or(open, |at| Slot::of(at).0);
    let first = bound(filter.next_from, i32::MIN);
    let last = bound(filter.next_before, i32::MAX);
    let from = match (cursor, descending) {
        (None, false) => first,
        (None, true) => last,
        (Some(cursor), false) => cursor.slot().0.saturating_add(1).max(first),
        (Some(cursor), true) => cursor.slot().0.saturating_sub(1).min(last),
    };
    let slot = probe.next_slot(from).await?.filter(|slot| (first..=last).contains(slot));
    let Some(slot) = slot.map(Slot) else { return Ok(None) };
    let is_crowded = is_crowded(probe, slot).await?;
    let shard = is_crowded.then_some(Shard(if descending { u8::MAX } else { 0 }));
    Ok(Some(SlotPart { slot, shard }))
}

/// Returns true if the time slot has too many jobs to be read at once.
async fn is_crowded<P: ListProbe>(probe: &P, slot: Slot) -> Result<bool, P::Error> {
    Ok(probe.slot_size(SlotPart { slot, shard: None }).await? > u64::from(LIST_SCAN_MAX))
}

/// Returns the result of a future that never waits, for example of a list query in a store with
/// blocking statements.
///
/// # Panics
///
/// Panics if the future waits.
pub fn without_waiting<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future that never waits has waited"),
    }
}
