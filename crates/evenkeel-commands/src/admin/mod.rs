//! The admin API of a crawl queue, which works on the same jobs and runs as the other APIs of
//! Evenkeel.
//!
//! The admin API shows a job by the status of its latest run: queued, crawling, success or failed.
//! The admin API uses the same commands as the other APIs; in addition, it can override the outcome
//! of a run.

mod change_priority;
mod list;
mod many;
mod read;
mod scheduled;
mod set_status;

use evenkeel_core::order::Priority;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{COMMANDS_MAX, Job, Now, Scope, WaitsFor};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::{CommandError, Jobs, Result};

pub use list::{AdminCursor, AdminPage, AdminStats};
pub use many::EachJob;
pub use read::{
    BulkStatus, JobRef, read_boost, read_bulk_retry, read_bulk_status, read_enabled,
    read_new_priority, read_status,
};
pub use scheduled::{ScheduledJob, cron_words};

/// Maximum number of jobs with waiting runs, per list, whose queue entries are read. Further jobs
/// with waiting runs are shown without data from their queue entries.
const DETAILED_MAX: usize = 100;
/// Maximum number of concurrent store requests.
const CONCURRENCY: usize = 8;

/// The status of the latest run of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AdminStatus {
    /// The run waits for a worker or for its retry, or the job is due.
    Queued,
    Crawling,
    Success,
    /// The run failed, timed out or was cancelled.
    Failed,
}

impl AdminStatus {
    pub const ALL: [Self; 4] = [Self::Queued, Self::Crawling, Self::Success, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Crawling => "crawling",
            Self::Success => "success",
            Self::Failed => "failed",
        }
    }

    pub fn words() -> [(&'static str, Self); 4] {
        Self::ALL.map(|status| (status.as_str(), status))
    }

    /// Returns the status of the job's latest run at `now`, or `None` if the job has never run and
    /// is not due.
    pub fn of(job: &Job, now: Timestamp) -> Option<Self> {
        if job.facts().running > 0 {
            return Some(Self::Crawling);
        }
        if job.live > 0 || job.is_due(now) {
            return Some(Self::Queued);
        }
        Self::of_end(job)
    }

    /// Returns the status of the job's last finished run.
    fn of_end(job: &Job) -> Option<Self> {
        job.last_outcome
            .map(|outcome| if outcome.is_success() { Self::Success } else { Self::Failed })
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct AdminJob {
    pub job: Job,
    pub status: Option<AdminStatus>,
    /// Priority of the queued run, including the increase for its waiting time.
    pub effective_priority: Priority,
    /// Earliest time at which a worker may claim the waiting run of the job, or the next run time
    /// of a job without a waiting run.
    pub visible_at: Option<Timestamp>,
    /// Time at which the failed run is retried, if it waits for a retry.
    pub next_retry_at: Option<Timestamp>,
}

impl Jobs {
    /// Returns the ids of the given jobs, in the order of `refs`.
    pub async fn ids_of(&self, scope: &Scope, refs: &[JobRef]) -> Result<Vec<Option<JobId>>> {
        let numbers = refs.iter().filter_map(|one| match one {
            JobRef::Number(number) => Some(*number),
            JobRef::Id(_) => None,
        });
        let numbers: Vec<i64> = numbers.collect();
        let mut found = Vec::with_capacity(numbers.len());
        for some in numbers.chunks(COMMANDS_MAX) {
            found.extend(self.store.ids_of_numbers(scope, some).await?);
        }
        let mut found = found.into_iter();
        let resolve = |one: &JobRef| match one {
            JobRef::Number(_) => found.next().flatten(),
            JobRef::Id(id) => Some(*id),
        };
        Ok(refs.iter().map(resolve).collect())
    }

    pub async fn id_of(&self, scope: &Scope, job: JobRef) -> Result<JobId> {
        let found = self.ids_of(scope, &[job]).await?.pop().flatten();
        found.ok_or(CommandError::NotFound)
    }

    pub async fn admin_job(&self, scope: &Scope, id: JobId) -> Result<AdminJob> {
        let (job, now) = self.get_with_now(scope, id).await?;
        self.with_attempts(scope, job, now).await
    }

    /// Builds the admin view of a job from its row alone, without its queue entries.
    fn summarize(&self, job: Job, now: Timestamp) -> AdminJob {
        let priority = job.definition.priority;
        let start = job.next_start(now).filter(|_| job.live == 0);
        let due = start.filter(|_| job.is_due(now));
        AdminJob {
            status: AdminStatus::of(&job, now),
            effective_priority: due
                .map_or(priority, |since| self.aging.effective(priority, since, now)),
            visible_at: start,
            next_retry_at: None,
            job,
        }
    }

    /// Adds the earliest time at which a worker may claim a waiting attempt of the job, and the
    /// highest priority of the waiting attempts.
    async fn with_attempts(&self, scope: &Scope, job: Job, now: Timestamp) -> Result<AdminJob> {
        let mut seen = self.summarize(job, now);
        if seen.job.live == 0 {
            return Ok(seen);
        }
        for waiting in self.store.waiting_attempts(scope, seen.job.id, None, Now::Database).await? {
            let priority = waiting.priority.unwrap_or(seen.job.definition.priority);
            let (visible_at, since) = match waiting.waits_for {
                WaitsFor::Time(due) => (due, due),
                WaitsFor::Permit { since, .. } => (since, since),
                WaitsFor::Worker { since, window, .. } => (window.from.unwrap_or(since), since),
            };
            let earliest = |known: Option<Timestamp>| known.into_iter().chain([visible_at]).min();
            if matches!(waiting.waits_for, WaitsFor::Time(_)) && waiting.key.attempt.0 > 0 {
                seen.next_retry_at = earliest(seen.next_retry_at);
            }
            seen.visible_at = earliest(seen.visible_at);
            let effective = self.aging.effective(priority, since, now);
            seen.effective_priority = seen.effective_priority.max(effective);
        }
        Ok(seen)
    }

    /// Builds the admin views of a list of jobs. Reads the waiting attempts of only the first
    /// [`DETAILED_MAX`] waiting jobs.
    async fn load_details(
        &self,
        scope: &Scope,
        jobs: Vec<Job>,
        now: Timestamp,
    ) -> Result<Vec<AdminJob>> {
        let mut detailed = 0;
        let views = jobs.into_iter().map(|job| {
            let waits = job.waiting > 0 && detailed < DETAILED_MAX;
            detailed += usize::from(waits);
            async move {
                if waits {
                    self.with_attempts(scope, job, now).await
                } else {
                    Ok(self.summarize(job, now))
                }
            }
        });
        stream::iter(views.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await
    }
}

#[cfg(test)]
mod tests;
