//! The indexes that find the jobs of a list, and the SQL statements that read these indexes.

use evenkeel_core::condition::Level;
use evenkeel_core::named_enum;
use evenkeel_core::status::JobStatus;

use super::{Activity, JobFilter, JobSort, LIST_SCAN_MAX, SortBy};

named_enum! {
    /// A database index that finds a superset of the jobs that pass a filter. The names of the SQL
    /// sections for an index end with the name of the index.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum ListIndex {
        /// Jobs with a running attempt.
        Running => "running",
        /// Jobs that have a waiting attempt, that are due, or that never ran and have no next
        /// scheduled time.
        Pending => "pending",
        /// Jobs with a waiting attempt.
        Waiting => "waiting",
        /// Jobs whose condition is not OK.
        AtRisk => "at_risk",
        /// Jobs with the first label of the filter.
        Label => "label",
        Source => "source",
        /// Jobs that the search index finds, and the newest jobs that are not in that index yet.
        Search => "search",
        Target => "target",
        Paused => "paused",
        /// Jobs without a next scheduled time, and cancelled jobs.
        Ended => "ended",
        /// Jobs with a next scheduled time in the range of the filter.
        NextTimes => "next_times",
        /// Jobs whose name starts with the prefix of the filter.
        Name => "name",
        SourcePrefix => "source_prefix",
        /// All jobs of the tenant.
        All => "all",
    }
}

/// Maximum size of an index that is read and sorted completely, if the filter has an index in the
/// order of the list.
const SORTED_MAX: u32 = 1_000;

impl JobFilter {
    /// Returns the indexes that can find the jobs of this filter, the most selective first.
    pub fn indexes(&self) -> Vec<ListIndex> {
        let by_status = match self.status {
            Some(JobStatus::Running) => Some(ListIndex::Running),
            Some(JobStatus::Pending) => Some(ListIndex::Pending),
            Some(JobStatus::Paused) => Some(ListIndex::Paused),
            Some(JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled) => {
                Some(ListIndex::Ended)
            }
            Some(JobStatus::Scheduled) | None => None,
        };
        let by_activity = self.active_attempts.map(|activity| match activity {
            Activity::Waits => ListIndex::Waiting,
            Activity::Runs => ListIndex::Running,
        });
        let at_risk = self.condition.is_some_and(|level| level != Level::Ok);
        let in_range = self.next_from.is_some() || self.next_before.is_some();
        let indexes = [
            by_status,
            by_activity,
            at_risk.then_some(ListIndex::AtRisk),
            (!self.metadata.is_empty()).then_some(ListIndex::Label),
            self.target.is_some().then_some(ListIndex::Target),
            self.source_id.is_some().then_some(ListIndex::Source),
            self.search.is_some().then_some(ListIndex::Search),
            in_range.then_some(ListIndex::NextTimes),
            self.name_prefix.is_some().then_some(ListIndex::Name),
            self.source_prefix.is_some().then_some(ListIndex::SourcePrefix),
            Some(ListIndex::All),
        ];
        indexes.into_iter().flatten().collect()
    }

    /// Returns an index of the filter whose jobs are in the order of the list, if one exists.
    pub(super) fn ordered_index(&self, sort: JobSort) -> Option<ListIndex> {
        let indexes = self.indexes().into_iter();
        let mut ordered = indexes.filter(|index| {
            matches!(
                index,
                ListIndex::Label | ListIndex::Source | ListIndex::Target | ListIndex::Paused
            )
        });
        ordered.next().filter(|_| sort.by == SortBy::Created)
    }

    /// Returns the maximum size of an index whose jobs are all read and then sorted.
    pub fn sorted_max(&self, sort: JobSort) -> u32 {
        if self.ordered_index(sort).is_some() { SORTED_MAX } else { LIST_SCAN_MAX }
    }

    /// Returns true if every job in the index passes the filter.
    pub(super) fn is_only(&self, index: ListIndex) -> bool {
        let mut rest = self.clone();
        match index {
            ListIndex::Label if rest.metadata.len() == 1 => rest.metadata.clear(),
            ListIndex::Source => rest.source_id = None,
            ListIndex::Target => rest.target = None,
            ListIndex::Paused => rest.status = None,
            _ => {}
        }
        rest.is_open()
    }

    /// Returns true if no filter is set.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// Names of the SQL sections from which list statements are built. Both stores define all sections
/// in this list and use the parameters of [`ListQuery`](super::ListQuery) as `:name`.
pub const LIST_SECTIONS: [&str; 27] = [
    "list_jobs_by_created", "list_jobs_by_label", "list_jobs_by_name", "list_jobs_by_paused",
    "list_jobs_by_source", "list_jobs_by_target", "list_jobs_by_updated", "list_jobs_from_all",
    "list_jobs_from_at_risk", "list_jobs_from_ended", "list_jobs_from_label",
    "list_jobs_from_name", "list_jobs_from_next_times", "list_jobs_from_paused",
    "list_jobs_from_pending", "list_jobs_from_running", "list_jobs_from_search",
    "list_jobs_from_source", "list_jobs_from_source_prefix", "list_jobs_from_target",
    "list_jobs_from_waiting", "list_jobs_in_slot", "list_jobs_passes",
    "list_jobs_scanned_next_times", "list_jobs_scanned_pending", "list_jobs_scanned_running",
    "list_jobs_scanned_waiting",
];

pub type FindSection = fn(&str) -> &'static str;

impl ListIndex {
    /// Returns the SQL statement that selects the jobs of the index.
    pub fn jobs(self, find: FindSection) -> &'static str {
        find(&format!("list_jobs_from_{}", self.as_str()))
    }

    /// Returns the SQL statement that counts the rows which the statement [`jobs`](Self::jobs)
    /// reads, if that statement reads more rows than it returns.
    pub fn scanned(self, find: FindSection) -> Option<&'static str> {
        let reads_more =
            matches!(self, Self::Running | Self::Pending | Self::Waiting | Self::NextTimes);
        reads_more.then(|| find(&format!("list_jobs_scanned_{}", self.as_str())))
    }
}

/// Returns the SQL statement that reads the next jobs in the order of a list, from `index` or else
/// from the index of the sort column.
pub(super) fn walk_statement(find: FindSection, sort: JobSort, index: Option<ListIndex>) -> String {
    let of_sort = match sort.by {
        SortBy::Updated => "updated",
        SortBy::Name => "name",
        SortBy::Created | SortBy::NextRun => "created",
    };
    let jobs = find(&format!("list_jobs_by_{}", index.map_or(of_sort, ListIndex::as_str)));
    if sort.descending {
        jobs.replace(" > ", " < ").replace(" >= ", " <= ").replace(" ASC", " DESC")
    } else {
        jobs.to_owned()
    }
}

/// Returns the SQL statement that reads the jobs selected by `jobs` and checks for each whether it
/// passes the filter.
pub fn passing_statement(find: FindSection, jobs: &str) -> String {
    format!("WITH c AS MATERIALIZED (\n{jobs})\n{}", find("list_jobs_passes"))
}
