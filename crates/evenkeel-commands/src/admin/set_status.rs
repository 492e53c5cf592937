//! Overrides the status of the latest run of a job.

use std::collections::BTreeSet;

use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::after_attempt::{Ended, RetryHint, after_end};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, JobId, Span, Timestamp};
use evenkeel_store::{
    Fire, Job, JobState, LiveAttempt, LiveState, NewEvent, NodeState, Now, OutcomeOverride,
    OverrideAction, OverrideResult, QueueEntry, QueueWait, Scope, Signal, Start,
};

use super::{AdminJob, AdminStatus};
use crate::{CommandError, Conflict, ControlCommand, Jobs, Result, TriggerResult};

/// Maximum number of tries to set the status of a run while other clients change the job.
const TRIES: usize = 16;
/// Maximum number of active runs of a job that one request finishes or requeues, oldest first.
/// Active runs are processed one after the other, so a higher maximum could exceed the time limit
/// of a bulk request.
const ACTIVE_MAX: u32 = 1000;
/// A requeued attempt may start only after this time, so that the running attempt can stop first.
const GRACE_PERIOD: Span = Span::from_secs(5);

impl Jobs {
    /// Overrides the status of the latest run of a job. `success` and `failed` finish all active
    /// runs of the job. `queued` requeues running attempts, retries a failed run, or triggers a new
    /// run after a success. Setting the status that the run already has does nothing. Only a worker
    /// can set the status `crawling`. The outcome of a finished run is never changed.
    pub async fn set_status(
        &self,
        scope: &Scope,
        id: JobId,
        wanted: AdminStatus,
    ) -> Result<AdminJob> {
        match wanted {
            AdminStatus::Success | AdminStatus::Failed => {
                self.end_active_runs(scope, id, wanted).await
            }
            AdminStatus::Queued => self.queue(scope, id).await,
            AdminStatus::Crawling => {
                let (job, now) = self.get_with_now(scope, id).await?;
                match AdminStatus::of(&job, now) {
                    Some(AdminStatus::Crawling) => self.with_attempts(scope, job, now).await,
                    status => Err(wrong_status(status, wanted)),
                }
            }
        }
    }

    /// Retries the latest run of a job, starting with a new first attempt, if that run failed or
    /// was cancelled.
    pub async fn admin_retry(&self, scope: &Scope, id: JobId) -> Result<AdminJob> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let begun = match AdminStatus::of(&job, now) {
            Some(AdminStatus::Failed) => self.run_again(scope, &job).await,
            _ => Err(Conflict::Busy.into()),
        };
        match begun {
            // A job that is busy gets the retry command only for its error, which names the allowed
            // commands.
            Err(CommandError::Conflict(Conflict::Busy)) => {
                self.control(scope, id, ControlCommand::Retry, None).await?;
            }
            begun => begun?,
        }
        self.admin_job(scope, id).await
    }

    /// Finishes the runs that are active when the request begins, including runs that start another
    /// attempt in the meantime. Runs that start after the request began are not changed.
    async fn end_active_runs(
        &self,
        scope: &Scope,
        id: JobId,
        wanted: AdminStatus,
    ) -> Result<AdminJob> {
        let mut selected: BTreeSet<AttemptKey> = BTreeSet::new();
        let mut is_done = false;
        for _ in 0..TRIES {
            let (job, now) = self.get_with_now(scope, id).await?;
            if selected.is_empty() {
                if AdminStatus::of(&job, now) == Some(wanted) {
                    return self.with_attempts(scope, job, now).await;
                }
                if job.live == 0 {
                    if !job.is_due(now) {
                        return Err(wrong_status(AdminStatus::of_end(&job), wanted));
                    }
                    self.fire_due(&job, now).await?;
                    continue;
                }
            }
            let mut left = match job.live {
                0 => Vec::new(),
                _ => self.store.active_attempts(scope, id, ACTIVE_MAX).await?,
            };
            if selected.is_empty() {
                selected = left.iter().map(|attempt| attempt.key.first_attempt()).collect();
            }
            left.retain(|attempt| selected.contains(&attempt.key.first_attempt()));
            if !left.is_empty() {
                is_done |= self.override_attempts(scope, &job, &left, wanted, now).await?;
            } else if is_done || !selected.is_empty() && AdminStatus::of_end(&job) == Some(wanted) {
                return self.with_attempts(scope, job, now).await;
            } else if !selected.is_empty() {
                // All selected runs finished with another outcome before this request could
                // override their outcome.
                return Err(wrong_status(AdminStatus::of_end(&job), wanted));
            }
        }
        Err(self.changed_too_often(scope, id).await?)
    }

    /// Requeues the running attempts of a job, or starts a new run if the job has no active run.
    async fn queue(&self, scope: &Scope, id: JobId) -> Result<AdminJob> {
        let mut is_own_duplicate = false;
        for _ in 0..TRIES {
            let (job, now) = self.get_with_now(scope, id).await?;
            match AdminStatus::of(&job, now) {
                Some(AdminStatus::Queued) => return self.with_attempts(scope, job, now).await,
                Some(AdminStatus::Crawling) => {
                    let all = self.store.active_attempts(scope, id, ACTIVE_MAX).await?;
                    if self.override_attempts(scope, &job, &all, AdminStatus::Queued, now).await? {
                        return self.admin_job(scope, id).await;
                    }
                }
                Some(AdminStatus::Success | AdminStatus::Failed) | None => {
                    match self.run_again(scope, &job).await {
                        // Another client or the scheduler has started a run of the job, so the job
                        // is read again.
                        Err(CommandError::Conflict(Conflict::Busy)) => {}
                        // The job itself holds the deduplication key, perhaps with a run that is
                        // already queued, so the job is read again.
                        Err(CommandError::Duplicate { id: holder })
                            if holder == id && !is_own_duplicate =>
                        {
                            is_own_duplicate = true;
                        }
                        // The request is done even if a worker has already claimed the new run.
                        begun => {
                            begun?;
                            return self.admin_job(scope, id).await;
                        }
                    }
                }
            }
        }
        Err(self.changed_too_often(scope, id).await?)
    }

    async fn changed_too_often(&self, scope: &Scope, id: JobId) -> Result<CommandError> {
        let generation = self.get(scope, id).await?.generation;
        Ok(CommandError::Stale { generation })
    }

    /// Starts a run of a job without active runs. Returns [`Conflict::Busy`] if a run has become
    /// active in the meantime.
    async fn run_again(&self, scope: &Scope, job: &Job) -> Result<()> {
        let has_failed = job.last_outcome.is_some_and(Outcome::is_failure);
        if has_failed && job.state == JobState::Active {
            match self.control(scope, job.id, ControlCommand::Retry, None).await {
                Ok(_) => return Ok(()),
                // The retry is refused if a run has started or the job was paused in the meantime.
                Err(CommandError::NotAllowed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        match self.request_run(scope, job.id, None, true).await? {
            TriggerResult::New(_) => Ok(()),
            TriggerResult::Existing { job, .. } => Err(CommandError::Duplicate { id: job }),
        }
    }

    /// Creates the run of a due job as the scheduler would, so that its outcome can be overridden.
    async fn fire_due(&self, job: &Job, now: Timestamp) -> Result<()> {
        let Some(due) = self.store.load_jobs(&[job.no]).await?.pop() else { return Ok(()) };
        let (_, members) = self.store.members().await?;
        let live = members.into_iter().find(|member| member.state == NodeState::Live);
        let Some(next_at) = due.next_at else { return Ok(()) };
        let node = live.ok_or(Conflict::NoLiveNode)?;
        let definition = &job.definition;
        let average = definition.average(job.history.average_good_duration);
        let time = DueTime { due: next_at, now, waited: false, average, fired: due.fired };
        let advanced = advance(definition, time);
        let start = advanced.fire.map(|time| {
            let waited = QueueWait { since: time, priority: None, aging: &self.aging };
            let deadline = must_start_by(job, time);
            (time, Start::Queued(QueueEntry::new(definition, deadline, average, now, waited)))
        });
        let fire = Fire {
            job: job.no,
            tenant: job.tenant,
            generation: due.generation,
            due: next_at,
            head: due.head,
            skip: advanced.skip,
            idle_only: start.is_some(),
            start,
            next_at: advanced.next,
        };
        // The caller of `fire_due` reads the job again, so the result of `fire` is not needed.
        self.store.fire(node.node, vec![fire], Now::Database).await?;
        Ok(())
    }

    /// Overrides the outcome of active attempts that have not changed since they were read. Returns
    /// true if the outcome of at least one attempt was overridden. If no outcome was overridden,
    /// returns the last refusal of the store as an error.
    async fn override_attempts(
        &self,
        scope: &Scope,
        job: &Job,
        all: &[LiveAttempt],
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Result<bool> {
        let (mut is_done, mut refusal) = (false, None);
        for attempt in all {
            // The clock is read for each requeued attempt, because the grace period of an attempt
            // starts when that attempt is requeued.
            let at = match (wanted, attempt.state) {
                (AdminStatus::Queued, LiveState::Running { .. }) => self.store.now().await?,
                _ => now,
            };
            let Some(action) = self.override_action(job, attempt, wanted, at) else { continue };
            let change = OutcomeOverride { key: attempt.key, expected: attempt.state, at, action };
            match self.store.override_outcome(scope, change.clone()).await? {
                OverrideResult::Done => {
                    is_done = true;
                    self.report_override(scope, &change, attempt.key);
                }
                OverrideResult::Changed => {}
                OverrideResult::Stopped => refusal = Some(Conflict::CannotRequeue.into()),
                OverrideResult::Duplicate(id) => refusal = Some(CommandError::Duplicate { id }),
            }
        }
        if is_done {
            self.announce(Signal::Jobs).await;
            if wanted == AdminStatus::Queued {
                self.announce(Signal::Ready).await;
            }
        }
        match refusal {
            Some(refusal) if !is_done => Err(refusal),
            _ => Ok(is_done),
        }
    }

    fn override_action(
        &self,
        job: &Job,
        attempt: &LiveAttempt,
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Option<OverrideAction> {
        let (definition, key) = (&job.definition, attempt.key);
        let (outcome, error) = match (wanted, attempt.state) {
            (AdminStatus::Success, _) => (Outcome::Completed, None),
            (AdminStatus::Failed, _) => {
                (Outcome::Failed, Some("set to failed by an operator".to_owned()))
            }
            (AdminStatus::Queued, LiveState::Running { .. }) => {
                let (since, priority) = (key.scheduled_at, attempt.priority);
                let waited = QueueWait { since, priority, aging: &self.aging };
                let deadline = must_start_by(job, key.scheduled_at);
                let from = now.saturating_add(GRACE_PERIOD);
                let average = definition.average(job.history.average_good_duration);
                let entry = QueueEntry::new(definition, deadline, average, from, waited);
                let open_from = entry.open_from.or(Some(from));
                return Some(OverrideAction::Queued(Box::new(QueueEntry { open_from, ..entry })));
            }
            (AdminStatus::Queued, LiveState::Waiting) | (AdminStatus::Crawling, _) => return None,
        };
        // A run that an operator sets to failed is handled like a cancelled run: the failure
        // neither stops the job nor causes a retry.
        let ended = Ended {
            attempt: key.attempt,
            outcome: Outcome::Cancelled,
            again: RetryHint::ByPolicy,
            started_at: now,
            finished_at: now,
        };
        Some(OverrideAction::Ended { outcome, error, then: after_end(definition, ended, 0.0) })
    }

    /// Counts the overridden outcome of an attempt in the metrics and publishes its event, as a
    /// worker would do.
    fn report_override(&self, scope: &Scope, change: &OutcomeOverride, key: AttemptKey) {
        let Some(end) = change.finish(scope.tenant, key, evenkeel_core::lease::Fence::NONE) else {
            return;
        };
        let outcome = AttemptStatus::from(end.outcome).as_str();
        metrics::counter!("evenkeel_runs_ended_total", "outcome" => outcome).increment(1);
        if self.store.events().has_listeners() {
            self.store.events().emit(NewEvent::of_end(&end));
        }
    }
}

/// Returns the latest start time with which the run scheduled at `time` keeps its deadline. The
/// duration of the run is estimated without the measured durations of earlier runs.
fn must_start_by(job: &Job, time: Timestamp) -> Timestamp {
    let before = time.saturating_sub(Span::from_micros(1));
    let over_by = job.definition.must_be_over_by(time, before);
    over_by.saturating_sub(job.definition.average(None))
}

fn wrong_status(is: Option<AdminStatus>, wanted: AdminStatus) -> CommandError {
    let is = is.map_or("none", AdminStatus::as_str);
    Conflict::WrongStatus { is, wanted: wanted.as_str() }.into()
}
