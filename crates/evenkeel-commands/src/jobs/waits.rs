//! How soon a run that waits will be taken.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{Attempt, Job, Now, Scope, WaitsFor};

use super::Jobs;
use crate::CommandError;

/// What a run that waits has to show for itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Waits {
    /// Its own priority, or its job's.
    pub priority: Priority,
    /// What its waiting has made of that.
    pub effective_priority: Priority,
    /// Since when it waits for a worker; none if its time has not come.
    pub since: Option<Timestamp>,
}

impl Jobs {
    /// The priority that a job has in the order of dispatch: its own, unless something of it waits.
    /// Of all that does it is the highest that waiting has made of theirs.
    pub async fn effective_priority(
        &self,
        scope: &Scope,
        job: &Job,
        now: Timestamp,
    ) -> Result<Priority, CommandError> {
        let base = job.definition.priority;
        let due = self.due_since(job, now).map(|since| self.aging.effective(base, since, now));
        if job.waiting == 0 {
            return Ok(due.unwrap_or(base));
        }
        let waiting = self.store.waiting_attempts(scope, job.id, None, Now::Database).await?;
        let waiting = waiting.into_iter().filter_map(|attempt| {
            let since = match attempt.waits_for {
                WaitsFor::Time(due) => Some(due).filter(|due| *due <= now)?,
                WaitsFor::Worker { since, .. } | WaitsFor::Permit { since, .. } => since,
            };
            Some(self.aging.effective(attempt.priority.unwrap_or(base), since, now))
        });
        Ok(waiting.chain(due).max().unwrap_or(base))
    }

    /// The same as far as a job tells by itself: what waits in the queue is left out of account.
    pub fn effective_if_due(&self, job: &Job, now: Timestamp) -> Priority {
        let base = job.definition.priority;
        self.due_since(job, now).map_or(base, |since| self.aging.effective(base, since, now))
    }

    /// Since when its next regular time waits to be fired, if that has come.
    fn due_since(&self, job: &Job, now: Timestamp) -> Option<Timestamp> {
        job.next_start(now).filter(|_| job.is_due(now))
    }

    /// When a run that was asked for starts, if a blackout of its job holds it; else it starts as
    /// soon as a worker is free.
    pub async fn held_until(
        &self,
        scope: &Scope,
        id: JobId,
        run: AttemptKey,
    ) -> Result<Option<Timestamp>, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let average = job.definition.average(job.history.average_good_duration);
        let start = job.definition.next_start(run.scheduled_at, average, now);
        Ok(Some(start).filter(|start| *start > now && *start > run.scheduled_at))
    }

    /// How soon a run will be taken; nothing if it does not wait.
    pub async fn waits(&self, scope: &Scope, run: &Attempt) -> Result<Option<Waits>, CommandError> {
        if run.status != AttemptStatus::Pending {
            return Ok(None);
        }
        let waiting = self.store.waiting_attempts(scope, run.job, None, Now::Database).await?;
        let Some(waiting) = waiting.into_iter().find(|waiting| waiting.key == run.key) else {
            return Ok(None);
        };
        let Some((job, now)) = self.store.get_with_now(scope, run.job).await? else {
            return Ok(None);
        };
        let priority = waiting.priority.unwrap_or(job.definition.priority);
        let since = match waiting.waits_for {
            WaitsFor::Time(due) => Some(due).filter(|due| *due <= now),
            WaitsFor::Worker { since, .. } | WaitsFor::Permit { since, .. } => Some(since),
        };
        let effective = |since| self.aging.effective(priority, since, now);
        let effective_priority = since.map_or(priority, effective);
        Ok(Some(Waits { priority, effective_priority, since }))
    }
}
