//! Computes the priorities of waiting runs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{Attempt, Job, Now, Scope, WaitsFor};

use super::Jobs;
use crate::Result;

/// Priority and waiting time of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WaitingRun {
    /// Priority of the run if it has its own priority, or else the priority of its job.
    pub priority: Priority,
    /// Priority of the run, including the increase for its waiting time.
    pub effective_priority: Priority,
    /// Time since which a worker may claim the run; `None` before its scheduled time.
    pub since: Option<Timestamp>,
}

impl Jobs {
    /// Returns the priority that the dispatch order uses for a job: the highest effective priority
    /// of its waiting runs, or its own priority if no run waits.
    pub async fn effective_priority(
        &self,
        scope: &Scope,
        job: &Job,
        now: Timestamp,
    ) -> Result<Priority> {
        let base = job.definition.priority;
        let due = self.due_since(job, now).map(|since| self.aging.effective(base, since, now));
        if job.waiting == 0 {
            return Ok(due.unwrap_or(base));
        }
        let waiting = self.store.waiting_attempts(scope, job.id, None, Now::Database).await?;
        let waiting = waiting.into_iter().filter_map(|attempt| {
            let since = waits_since(attempt.waits_for, now)?;
            Some(self.aging.effective(attempt.priority.unwrap_or(base), since, now))
        });
        Ok(waiting.chain(due).max().unwrap_or(base))
    }

    /// Computes the effective priority of a job from its row alone, without reading its queued
    /// runs.
    pub fn priority_from_row(&self, job: &Job, now: Timestamp) -> Priority {
        let base = job.definition.priority;
        self.due_since(job, now).map_or(base, |since| self.aging.effective(base, since, now))
    }

    fn due_since(&self, job: &Job, now: Timestamp) -> Option<Timestamp> {
        job.next_start(now).filter(|_| job.is_due(now))
    }

    /// Returns the time at which a triggered run starts, if a blackout delays the run. `None` means
    /// that the triggered run starts as soon as a worker is free.
    pub async fn held_until(
        &self,
        scope: &Scope,
        id: JobId,
        run: AttemptKey,
    ) -> Result<Option<Timestamp>> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let average = job.definition.average(job.history.average_good_duration);
        let start = job.definition.next_start(run.scheduled_at, average, now);
        Ok(Some(start).filter(|start| *start > now && *start > run.scheduled_at))
    }

    /// Returns the priority and the waiting time of a run, or `None` if the run does not wait.
    pub async fn waiting_run(&self, scope: &Scope, run: &Attempt) -> Result<Option<WaitingRun>> {
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
        let since = waits_since(waiting.waits_for, now);
        let effective = |since| self.aging.effective(priority, since, now);
        let effective_priority = since.map_or(priority, effective);
        Ok(Some(WaitingRun { priority, effective_priority, since }))
    }
}

/// Returns the time since which a worker may claim a waiting attempt; `None` before that time.
fn waits_since(waits_for: WaitsFor, now: Timestamp) -> Option<Timestamp> {
    match waits_for {
        WaitsFor::Time(due) => Some(due).filter(|due| *due <= now),
        WaitsFor::Worker { since, .. } | WaitsFor::Permit { since, .. } => Some(since),
    }
}
