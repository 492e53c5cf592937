//! Number of jobs by status.

use evenkeel_core::status::JobStatus;

use super::LIST_SCAN_MAX;

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct JobCounts {
    /// Number of jobs that are not deleted, from a stored count.
    pub total: u64,
    /// Number of jobs that are due but not yet claimed by a worker.
    pub pending: u64,
    /// Number of jobs that wait for their next scheduled time: the total minus the jobs in all
    /// other statuses.
    pub scheduled: u64,
    pub running: u64,
    /// Number of paused jobs, from a stored count.
    pub paused: u64,
    /// Number of jobs without a next scheduled time whose last run succeeded.
    pub completed: u64,
    /// Number of jobs without a next scheduled time whose last run failed.
    pub failed: u64,
    pub cancelled: u64,
    /// True if some statuses were counted only up to a limit. A status that was counted up to a
    /// limit may have more jobs, and then `scheduled` is too high.
    pub is_estimate: bool,
}

impl JobCounts {
    /// Sets `scheduled` to the total minus the jobs in all other statuses. `scanned` is the number
    /// of ended jobs or of due jobs that were read, whichever is higher.
    #[must_use]
    pub fn with_rest(self, scanned: u64) -> Self {
        let others =
            [self.pending, self.running, self.paused, self.completed, self.failed, self.cancelled];
        let bound = u64::from(LIST_SCAN_MAX);
        Self {
            scheduled: self.total.saturating_sub(others.iter().sum()),
            is_estimate: scanned > bound || self.pending > bound,
            ..self
        }
    }

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
