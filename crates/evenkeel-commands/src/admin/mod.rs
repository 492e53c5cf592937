//! The admin API of a crawl queue in its own words, on the same jobs and runs as everything else.
//!
//! To it a job is where its latest run is: queued, crawling, success or failed. What it changes, it
//! changes by the commands that everybody uses; only saying how a run went is its own.

mod change_priority;
mod list;
mod many;
mod read;
mod scheduled;
mod settle;

use evenkeel_core::order::Priority;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_store::{COMMANDS_MAX, Job, Now, Scope, WaitsFor};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::{CommandError, Jobs};

pub use list::{AdminPage, AdminPlace, AdminStats};
pub use many::EachJob;
pub use read::{
    BulkStatus, JobRef, read_boost, read_bulk_retry, read_bulk_status, read_enabled,
    read_new_priority, read_status,
};
pub use scheduled::{ScheduledJob, cron_words};

/// So many jobs of a list that wait are looked at closely; of the rest is said what the list knows.
const LOOKED_INTO_MAX: usize = 100;
/// So many are looked into at once.
const SIDE_BY_SIDE: usize = 8;

/// Where the latest run of a job is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AdminStatus {
    /// It waits: for a worker, for the time of its retry, or its time has come.
    Queued,
    /// A worker has it.
    Crawling,
    /// It ended well.
    Success,
    /// It did not: it failed, took too long or was cancelled.
    Failed,
}

impl AdminStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Crawling, Self::Success, Self::Failed];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Crawling => "crawling",
            Self::Success => "success",
            Self::Failed => "failed",
        }
    }

    /// Each with its word.
    pub fn words() -> [(&'static str, Self); 4] {
        Self::ALL.map(|status| (status.as_str(), status))
    }

    /// Where the latest run of a job is at `now`; nowhere if there was none. What is only scheduled
    /// for later is not queued.
    pub fn of(job: &Job, now: Timestamp) -> Option<Self> {
        if job.facts().running > 0 {
            return Some(Self::Crawling);
        }
        if job.live > 0 || job.is_due(now) {
            return Some(Self::Queued);
        }
        Self::of_end(job)
    }

    /// How the run of a job that is over ended, if there was one.
    fn of_end(job: &Job) -> Option<Self> {
        job.last_outcome.map(|outcome| if outcome.is_good() { Self::Success } else { Self::Failed })
    }
}

/// A job as the admin API sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct AdminJob {
    /// The job.
    pub job: Job,
    /// Where its latest run is.
    pub status: Option<AdminStatus>,
    /// What waiting has made of its priority.
    pub effective_priority: Priority,
    /// When a worker may take it, or could have; when it is next due, if nothing of it waits.
    pub visible_at: Option<Timestamp>,
    /// When it is tried again, if it waits for that.
    pub next_retry_at: Option<Timestamp>,
}

impl Jobs {
    /// The jobs with these numbers or ids, in the order asked for.
    pub async fn ids_of(
        &self,
        scope: &Scope,
        asked: &[JobRef],
    ) -> Result<Vec<Option<JobId>>, CommandError> {
        let numbers: Vec<i64> = asked.iter().filter_map(JobRef::number).collect();
        let mut found = Vec::with_capacity(numbers.len());
        for some in numbers.chunks(COMMANDS_MAX) {
            found.extend(self.store.ids_of_numbers(scope, some).await?);
        }
        let mut found = found.into_iter();
        let resolve = |one: &JobRef| match one {
            JobRef::Number(_) => found.next().flatten(),
            JobRef::Id(id) => Some(*id),
        };
        Ok(asked.iter().map(resolve).collect())
    }

    /// The job with this number or id.
    pub async fn id_of(&self, scope: &Scope, asked: JobRef) -> Result<JobId, CommandError> {
        let found = self.ids_of(scope, &[asked]).await?.pop().flatten();
        found.ok_or(CommandError::NotFound)
    }

    /// A job as the admin API sees it.
    pub async fn admin_job(&self, scope: &Scope, id: JobId) -> Result<AdminJob, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        self.look_into(scope, job, now).await
    }

    /// What the job itself says.
    fn glance_at(&self, job: Job, now: Timestamp) -> AdminJob {
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

    /// The same, and what waits of it: of several the first that may be taken.
    async fn look_into(
        &self,
        scope: &Scope,
        job: Job,
        now: Timestamp,
    ) -> Result<AdminJob, CommandError> {
        let mut seen = self.glance_at(job, now);
        if seen.job.live == 0 {
            return Ok(seen);
        }
        for waiting in self.store.waiting_attempts(scope, seen.job.id, None, Now::Database).await? {
            let priority = waiting.priority.unwrap_or(seen.job.definition.priority);
            let (visible_at, effective) = match waiting.waits_for {
                WaitsFor::Time(due) => {
                    if waiting.key.attempt.0 > 0 {
                        let earlier = seen.next_retry_at.is_none_or(|known| due < known);
                        seen.next_retry_at = if earlier { Some(due) } else { seen.next_retry_at };
                    }
                    (due, self.aging.effective(priority, due, now))
                }
                WaitsFor::Permit { since, .. } => {
                    (since, self.aging.effective(priority, since, now))
                }
                WaitsFor::Worker { since, opening, .. } => {
                    let effective = self.aging.effective(priority, since, now);
                    (opening.from.unwrap_or(since), effective)
                }
            };
            if seen.visible_at.is_none_or(|known| visible_at < known) {
                seen.visible_at = Some(visible_at);
            }
            seen.effective_priority = seen.effective_priority.max(effective);
        }
        Ok(seen)
    }

    /// Jobs of a list, the first that wait looked at closely.
    async fn look_over(
        &self,
        scope: &Scope,
        jobs: Vec<Job>,
        now: Timestamp,
    ) -> Result<Vec<AdminJob>, CommandError> {
        let mut closely = 0;
        let looks = jobs.into_iter().map(|job| {
            let waits = job.waiting > 0 && closely < LOOKED_INTO_MAX;
            closely += usize::from(waits);
            async move {
                if waits {
                    self.look_into(scope, job, now).await
                } else {
                    Ok(self.glance_at(job, now))
                }
            }
        });
        let looks: Vec<_> = looks.collect();
        stream::iter(looks).buffered(SIDE_BY_SIDE).try_collect().await
    }
}

#[cfg(test)]
mod tests;
