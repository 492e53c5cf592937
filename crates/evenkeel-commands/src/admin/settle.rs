//! Saying where the latest run of a job is to be.

use std::collections::BTreeSet;

use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::chain::{Again, Ended, after_end};
use evenkeel_core::run::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, JobId, Span, Timestamp};
use evenkeel_store::{
    Fire, Job, JobState, LiveAttempt, LiveState, NewEvent, NodeState, Now, OutcomeOverride,
    OverrideAction, OverrideResult, QueueEntry, QueueWait, Scope, Signal, Start,
};

use super::{AdminJob, AdminStatus};
use crate::{Ask, CommandError, Conflict, Jobs};

/// What was seen of a job and is no longer so, is looked at again so often.
const TRIES: usize = 16;
/// So many runs of a job are ended or put back at once, the oldest first: one after the other, so that
/// more of one job could take longer than a request about many jobs has.
const GOING_ON_MAX: u32 = 1000;
/// The body of an attempt that goes back into the queue has so long to end before another begins.
const LET_GO: Span = Span::from_secs(5);

impl Jobs {
    /// Sets where the latest run of a job is.
    ///
    /// `success` and `failed` end what waits or runs; `queued` puts back what runs, tries again what
    /// failed and runs once more what was good. What is so already stays. Nobody can make a job
    /// crawl but a worker, and the end of a run that is over is not rewritten.
    pub async fn set_status(
        &self,
        scope: &Scope,
        id: JobId,
        wanted: AdminStatus,
    ) -> Result<AdminJob, CommandError> {
        match wanted {
            AdminStatus::Success | AdminStatus::Failed => self.say_end(scope, id, wanted).await,
            AdminStatus::Queued => self.queue(scope, id).await,
            AdminStatus::Crawling => {
                let (job, now) = self.get_with_now(scope, id).await?;
                match AdminStatus::of(&job, now) {
                    Some(AdminStatus::Crawling) => self.look_into(scope, job, now).await,
                    status => Err(not_so(status, wanted)),
                }
            }
        }
    }

    /// Tries the latest run of a job again, which did not end well, from its first attempt on.
    pub async fn admin_retry(&self, scope: &Scope, id: JobId) -> Result<AdminJob, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let begun = match AdminStatus::of(&job, now) {
            Some(AdminStatus::Failed) => self.run_again(scope, &job).await,
            _ => Err(CommandError::Conflict(Conflict::Busy)),
        };
        match begun {
            // Who says why not, says what would be allowed.
            Err(CommandError::Conflict(Conflict::Busy)) => {
                self.ask_one(scope, id, Ask::Retry, None).await?;
            }
            begun => begun?,
        }
        self.admin_job(scope, id).await
    }

    /// Ends the runs that go on when it is asked for, each of them, wherever it goes meanwhile. What
    /// comes up after that was not meant.
    async fn say_end(
        &self,
        scope: &Scope,
        id: JobId,
        wanted: AdminStatus,
    ) -> Result<AdminJob, CommandError> {
        let mut meant: BTreeSet<AttemptKey> = BTreeSet::new();
        let mut was_settled = false;
        for _ in 0..TRIES {
            let (job, now) = self.get_with_now(scope, id).await?;
            if meant.is_empty() {
                if AdminStatus::of(&job, now) == Some(wanted) {
                    return self.look_into(scope, job, now).await;
                }
                if job.live == 0 {
                    if !job.is_due(now) {
                        return Err(not_so(AdminStatus::of_end(&job), wanted));
                    }
                    self.fire_due(&job, now).await?;
                    continue;
                }
            }
            let mut left = match job.live {
                0 => Vec::new(),
                _ => self.store.active_attempts(scope, id, GOING_ON_MAX).await?,
            };
            if meant.is_empty() {
                meant = left.iter().map(|one| one.key.first_attempt()).collect();
            }
            left.retain(|one| meant.contains(&one.key.first_attempt()));
            if !left.is_empty() {
                was_settled |= self.settle(scope, &job, &left, wanted, now).await?;
            } else if was_settled || !meant.is_empty() && AdminStatus::of_end(&job) == Some(wanted)
            {
                return self.look_into(scope, job, now).await;
            } else if !meant.is_empty() {
                // All of them were quicker, and ended otherwise.
                return Err(not_so(AdminStatus::of_end(&job), wanted));
            }
        }
        Err(self.changed_too_often(scope, id).await?)
    }

    /// Puts back what runs, or begins a run if nothing goes on.
    async fn queue(&self, scope: &Scope, id: JobId) -> Result<AdminJob, CommandError> {
        let mut keeps_itself_out = false;
        for _ in 0..TRIES {
            let (job, now) = self.get_with_now(scope, id).await?;
            match AdminStatus::of(&job, now) {
                Some(AdminStatus::Queued) => return self.look_into(scope, job, now).await,
                Some(AdminStatus::Crawling) => {
                    let all = self.store.active_attempts(scope, id, GOING_ON_MAX).await?;
                    if self.settle(scope, &job, &all, AdminStatus::Queued, now).await? {
                        return self.admin_job(scope, id).await;
                    }
                }
                Some(AdminStatus::Success | AdminStatus::Failed) | None => {
                    match self.run_again(scope, &job).await {
                        // Somebody was quicker, or it began by itself: look again.
                        Err(CommandError::Conflict(Conflict::Busy)) => {}
                        // Whatever of it has the key may be what was wanted: look once more.
                        Err(CommandError::Duplicate { id: holder })
                            if holder == id && !keeps_itself_out =>
                        {
                            keeps_itself_out = true;
                        }
                        // Wherever it is by now: a worker may be quick, and once was meant.
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

    async fn changed_too_often(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<CommandError, CommandError> {
        let generation = self.get(scope, id).await?.generation;
        Ok(CommandError::Stale { generation })
    }

    /// Begins a run of a job of which nothing goes on. It is [busy](Conflict::Busy) if something does
    /// by then.
    async fn run_again(&self, scope: &Scope, job: &Job) -> Result<(), CommandError> {
        let has_failed = job.last_outcome.is_some_and(Outcome::is_failure);
        if has_failed && job.state == JobState::Active {
            match self.ask_one(scope, job.id, Ask::Retry, None).await {
                Ok(_) => return Ok(()),
                // Something goes on by now, or it was paused.
                Err(CommandError::NotAllowed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.trigger_idle(scope, job.id).await.map(|_| ())
    }

    /// Has a due job's time begin as its scheduler would, so that there is a run to speak of.
    async fn fire_due(&self, job: &Job, now: Timestamp) -> Result<(), CommandError> {
        let Some(due) = self.store.load_jobs(&[job.no]).await?.pop() else { return Ok(()) };
        let (_, members) = self.store.members().await?;
        let live = members.into_iter().find(|member| member.state == NodeState::Live);
        let Some(next_at) = due.next_at else { return Ok(()) };
        let Some(node) = live else {
            return Err(CommandError::Conflict(Conflict::NobodyFires));
        };
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
        // Whatever became of it is seen by looking again.
        self.store.fire(node.node, vec![fire], Now::Database).await?;
        Ok(())
    }

    /// Settles what was seen to go on of a job. Says whether it was still so of any; if it was of none
    /// because it may not be, says why.
    async fn settle(
        &self,
        scope: &Scope,
        job: &Job,
        all: &[LiveAttempt],
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Result<bool, CommandError> {
        let (mut was_settled, mut refusal) = (false, None);
        for one in all {
            // The body has its time to end from when its attempt goes back, and many take a while.
            let at = match (wanted, one.state) {
                (AdminStatus::Queued, LiveState::Running { .. }) => self.store.now().await?,
                _ => now,
            };
            let Some(verdict) = self.verdict(job, one, wanted, at) else { continue };
            let settle = OutcomeOverride { key: one.key, expected: one.state, at, action: verdict };
            match self.store.override_outcome(scope, settle.clone()).await? {
                OverrideResult::Done => {
                    was_settled = true;
                    self.tell_settled(scope, &settle, one.key);
                }
                OverrideResult::Elsewhere => {}
                OverrideResult::Stopped => {
                    refusal = Some(CommandError::Conflict(Conflict::GoesNoFurther));
                }
                OverrideResult::Duplicate(id) => refusal = Some(CommandError::Duplicate { id }),
            }
        }
        if was_settled {
            self.announce(Signal::Jobs).await;
            if wanted == AdminStatus::Queued {
                self.announce(Signal::Ready).await;
            }
        }
        match refusal {
            Some(refusal) if !was_settled => Err(refusal),
            _ => Ok(was_settled),
        }
    }

    fn verdict(
        &self,
        job: &Job,
        one: &LiveAttempt,
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Option<OverrideAction> {
        let (definition, key) = (&job.definition, one.key);
        let (outcome, error) = match (wanted, one.state) {
            (AdminStatus::Success, _) => (Outcome::Completed, None),
            (AdminStatus::Failed, _) => {
                (Outcome::Failed, Some("somebody set it to failed".to_owned()))
            }
            (AdminStatus::Queued, LiveState::Running { .. }) => {
                let (since, priority) = (key.scheduled_at, one.priority);
                let waited = QueueWait { since, priority, aging: &self.aging };
                let deadline = must_start_by(job, key.scheduled_at);
                let from = now.saturating_add(LET_GO);
                let average = definition.average(job.history.average_good_duration);
                let ticket = QueueEntry::new(definition, deadline, average, from, waited);
                let open_from = ticket.open_from.or(Some(from));
                return Some(OverrideAction::Queued(Box::new(QueueEntry { open_from, ..ticket })));
            }
            (AdminStatus::Queued, LiveState::Waiting) | (AdminStatus::Crawling, _) => return None,
        };
        // As of a run that somebody ended: its failure stops no job, and is not tried again.
        let ended = Ended {
            attempt: key.attempt,
            outcome: Outcome::Cancelled,
            again: Again::AsUsual,
            started_at: now,
            finished_at: now,
        };
        Some(OverrideAction::Ended { outcome, error, then: after_end(definition, ended, 0.0) })
    }

    /// Counts an end, and tells it to those who listen, as whoever ran it would have.
    fn tell_settled(&self, scope: &Scope, settle: &OutcomeOverride, key: AttemptKey) {
        let Some(end) = settle.finish(scope.tenant, key, evenkeel_core::lease::Fence::NONE) else {
            return;
        };
        let outcome = AttemptStatus::from(end.outcome).as_str();
        metrics::counter!("evenkeel_runs_ended_total", "outcome" => outcome).increment(1);
        if self.store.events().has_listeners() {
            self.store.events().emit(NewEvent::of_end(&end));
        }
    }
}

/// By when the run for a time must start, as far as that time alone tells.
fn must_start_by(job: &Job, time: Timestamp) -> Timestamp {
    let before = time.saturating_sub(Span::from_micros(1));
    let over_by = job.definition.must_be_over_by(time, before);
    over_by.saturating_sub(job.definition.average(None))
}

/// The latest run of a job cannot be said to be there.
fn not_so(is: Option<AdminStatus>, wanted: AdminStatus) -> CommandError {
    let is = is.map_or("none", AdminStatus::as_str);
    CommandError::Conflict(Conflict::NotSo { is, wanted: wanted.as_str() })
}
