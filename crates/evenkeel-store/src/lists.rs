//! Which jobs are listed, in which order, and how many there are.

use evenkeel_core::JobNo;
use evenkeel_core::Timestamp;
use evenkeel_core::condition::Level;
use evenkeel_core::order::Lane;
use evenkeel_core::status::JobStatus;

/// Jobs that a page looks at, at most, where no index leads to what passes the filter.
pub const LIST_SCAN_MAX: u32 = 10_000;

/// Jobs in a state are counted one by one up to here.
pub const COUNTED_MAX: u32 = 10_000;

/// Which jobs to list: those that pass all that is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobFilter {
    /// Those whose name starts with this.
    pub name_prefix: Option<String>,
    /// Those about this source.
    pub source_id: Option<String>,
    /// Those about a source whose id starts with this.
    pub source_prefix: Option<String>,
    /// Those in this state by the store's clock. Of jobs that run or wait for a worker, those are
    /// found that did when the list was made.
    pub status: Option<JobStatus>,
    /// Those in this condition, as they were judged last.
    pub condition: Option<Level>,
    /// Those with this executor.
    pub executor: Option<String>,
    /// Those in this lane.
    pub lane: Option<Lane>,
    /// Those whose metadata hold all of these at the top, as by [`labels_of`](crate::labels_of).
    pub metadata: Vec<(String, String)>,
    /// Those whose next time is this or later.
    pub next_from: Option<Timestamp>,
    /// Those whose next time is before this.
    pub next_before: Option<Timestamp>,
    /// Those that name the target with this number.
    pub target: Option<i64>,
    /// Those of which something waits or runs, whether they take part or not. As with `status`, those
    /// are found of which it did when the list was made.
    pub active_attempts: Option<Activity>,
}

/// What goes on of a job, though it may be paused or cancelled.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Something waits, for a worker or its time, and nothing runs.
    Waits,
    /// Something runs.
    Runs,
}

/// What a list of jobs is ordered by.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SortBy {
    /// When they were created.
    #[default]
    Created,
    /// When a command last changed them.
    Updated,
    /// Their name; those without one are left out.
    Name,
    /// Their next time; those without one are left out.
    NextRun,
}

/// How a list of jobs is ordered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSort {
    /// By what.
    pub by: SortBy,
    /// The largest first.
    pub descending: bool,
}

/// A place in a list of jobs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct JobCursor {
    /// What the list is ordered by, if that is a time; else 0.
    pub at: i64,
    /// The job itself. Where the order is by name, its name says the rest: if it has lost that,
    /// nothing follows.
    pub no: JobNo,
}

/// How many jobs are in which state.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobCounts {
    /// All that are not deleted: a kept count.
    pub total: u64,
    /// Their time has come, and no worker has claimed them yet.
    pub pending: u64,
    /// Waiting for their next time: what the others leave of the total.
    pub scheduled: u64,
    /// With an attempt that runs.
    pub running: u64,
    /// Waiting to be resumed: a kept count.
    pub paused: u64,
    /// Over, with a good last run.
    pub completed: u64,
    /// Over, with a bad last run.
    pub failed: u64,
    /// Ended by somebody.
    pub cancelled: u64,
    /// Some states were counted only up to a bound: there may be more in them, and fewer that are
    /// scheduled.
    pub is_estimate: bool,
}

impl JobCounts {
    /// The same, with all others scheduled. `looked_at` are the jobs that were looked at for being
    /// over or due, whichever are more.
    #[must_use]
    pub fn with_rest(self, looked_at: u64) -> Self {
        let others =
            [self.pending, self.running, self.paused, self.completed, self.failed, self.cancelled];
        let bound = u64::from(LIST_SCAN_MAX);
        Self {
            scheduled: self.total.saturating_sub(others.iter().sum()),
            is_estimate: looked_at > bound || self.pending > bound,
            ..self
        }
    }

    /// Those in one state.
    pub fn of_mut(&mut self, status: JobStatus) -> &mut u64 {
        match status {
            JobStatus::Pending => &mut self.pending,
            JobStatus::Scheduled => &mut self.scheduled,
            JobStatus::Running => &mut self.running,
            JobStatus::Paused => &mut self.paused,
            JobStatus::Completed => &mut self.completed,
            JobStatus::Failed => &mut self.failed,
            JobStatus::Cancelled => &mut self.cancelled,
        }
    }
}
