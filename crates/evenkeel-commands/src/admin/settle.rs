//! Saying where the latest run of a job is to be.

use std::collections::{HashMap, HashSet};

use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::chain::{Again, Ended, after_end};
use evenkeel_core::run::{Outcome, RunStatus};
use evenkeel_core::{JobId, RunKey, Span, Timestamp};
use evenkeel_store::{
    Fire, Job, NewEvent, NodeState, Now, ORDERS_MAX, Obeyed, PageRequest, RunFilter, Scope, Seen,
    Settle, Signal, Standing, Start, Ticket, Verdict, Waited,
};
use futures::{StreamExt as _, stream};

use super::{AdminJob, AdminStatus, JobRef, SIDE_BY_SIDE, is_due};
use crate::{Ask, CommandError, Conflict, Jobs};

/// What was seen of a job and is no longer so, is looked at again so often.
const TRIES: usize = 16;
/// Runs of a job that are looked at for one that goes on, in one step and at most.
const RUNS_AT_ONCE: u32 = 100;
const RUNS_LOOKED_AT: u32 = 10_000;
/// The body of an attempt that goes back into the queue has so long to end before another begins.
const LET_GO: Span = Span::from_secs(5);

/// What became of one of many jobs.
pub type EachJob = Vec<Result<AdminJob, CommandError>>;

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
        let mut was_settled = false;
        for _ in 0..TRIES {
            let (job, now) = self.get_with_now(scope, id).await?;
            let status = AdminStatus::of(&job, now);
            let goes_on = job.live > 0 || is_due(&job, now);
            // What came up meanwhile was not meant.
            let is_done = was_settled && job.live == 0;
            if is_done || status == Some(wanted) {
                return self.look_into(scope, job, now).await;
            }
            match wanted {
                AdminStatus::Success | AdminStatus::Failed if goes_on => {
                    if job.live == 0 {
                        self.fire_due(&job, now).await?;
                    } else {
                        was_settled |= self.settle(scope, &job, wanted, now).await?;
                    }
                }
                AdminStatus::Queued if status == Some(AdminStatus::Crawling) => {
                    if self.settle(scope, &job, wanted, now).await? {
                        return self.admin_job(scope, id).await;
                    }
                }
                AdminStatus::Queued => match self.run_again(scope, &job).await {
                    // It began by itself: look again.
                    Err(CommandError::Conflict(Conflict::Busy)) => {}
                    // Wherever it is by now: a worker may be quick, and once was meant.
                    begun => {
                        begun?;
                        return self.admin_job(scope, id).await;
                    }
                },
                AdminStatus::Crawling | AdminStatus::Success | AdminStatus::Failed => {
                    let is = status.map_or("none", AdminStatus::as_str);
                    let conflict = Conflict::NotSo { is, wanted: wanted.as_str() };
                    return Err(CommandError::Conflict(conflict));
                }
            }
        }
        let generation = self.get(scope, id).await?.generation;
        Err(CommandError::Stale { generation })
    }

    /// Tries the latest run of a job again, which did not end well, from its first attempt on.
    pub async fn admin_retry(&self, scope: &Scope, id: JobId) -> Result<AdminJob, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        if AdminStatus::of(&job, now) == Some(AdminStatus::Failed) {
            self.run_again(scope, &job).await?;
        } else {
            // Who says why not, says what would be allowed.
            self.ask_one(scope, id, Ask::Retry, None).await?;
        }
        self.admin_job(scope, id).await
    }

    /// Sets where the latest runs of many jobs are, each on its own, in their order.
    pub async fn set_status_of_many(
        &self,
        scope: &Scope,
        asked: &[JobRef],
        wanted: AdminStatus,
    ) -> Result<EachJob, CommandError> {
        let ids = self.ids_of(scope, asked).await?;
        let set = |id: Option<JobId>| async move {
            match id {
                Some(id) => self.set_status(scope, id, wanted).await,
                None => Err(CommandError::NotFound),
            }
        };
        let mut known = HashSet::new();
        let is_first: Vec<bool> =
            ids.iter().map(|id| id.is_none_or(|id| known.insert(id))).collect();
        let first = ids.iter().zip(&is_first).filter(|(_, is_first)| **is_first);
        let first: Vec<_> = first.map(|(id, _)| set(*id)).collect();
        let first: EachJob = stream::iter(first).buffered(SIDE_BY_SIDE).collect().await;
        let mut first = first.into_iter();
        let mut each = Vec::with_capacity(ids.len());
        for (id, is_first) in ids.into_iter().zip(is_first) {
            // Who is named again is told what it is by then.
            each.push(match is_first.then(|| first.next()).flatten() {
                Some(answer) => answer,
                None => set(id).await,
            });
        }
        Ok(each)
    }

    /// Tries the latest runs of many jobs again, each on its own, in their order.
    pub async fn admin_retry_many(
        &self,
        scope: &Scope,
        asked: &[JobRef],
    ) -> Result<EachJob, CommandError> {
        let ids = self.ids_of(scope, asked).await?;
        let mut answers: HashMap<JobId, Obeyed> = HashMap::new();
        let known: Vec<JobId> = ids.iter().flatten().copied().collect();
        for some in known.chunks(ORDERS_MAX) {
            let new: Vec<JobId> =
                some.iter().filter(|id| !answers.contains_key(id)).copied().collect();
            let obeyed = self.ask(scope, &new, Ask::Retry, None).await?;
            answers.extend(new.into_iter().zip(obeyed));
        }
        let now = self.store.now().await?;
        let mut each = Vec::with_capacity(ids.len());
        for id in ids {
            let answer = id.and_then(|id| Some((id, answers.get(&id)?)));
            each.push(match answer {
                None | Some((_, Obeyed::NotFound)) => Err(CommandError::NotFound),
                Some((_, Obeyed::Done(done))) => match &done.job {
                    Some(job) => Ok(self.glance_at(job.clone(), now)),
                    None => Err(CommandError::NotFound),
                },
                Some((_, Obeyed::Stale(job))) => {
                    Err(CommandError::Stale { generation: job.generation })
                }
                Some((_, Obeyed::NameTaken(id))) => Err(CommandError::NameTaken { id: *id }),
                Some((_, Obeyed::Duplicate(id))) => Err(CommandError::Duplicate { id: *id }),
                // Some that did not fail to a job did to the admin API.
                Some((id, Obeyed::NotAllowed(_))) => self.admin_retry(scope, id).await,
            });
        }
        Ok(each)
    }

    /// Begins a run of a job of which nothing goes on.
    async fn run_again(&self, scope: &Scope, job: &Job) -> Result<(), CommandError> {
        let has_failed = job.last_outcome.is_some_and(Outcome::is_failure);
        if has_failed && job.standing == Standing::Active {
            match self.ask_one(scope, job.id, Ask::Retry, None).await {
                Ok(_) => return Ok(()),
                // Something goes on by now, or it was paused.
                Err(CommandError::NotAllowed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.trigger(scope, job.id, None).await.map(|_| ())
    }

    /// Has a due job's time begin as its scheduler would, so that there is a run to speak of.
    async fn fire_due(&self, job: &Job, now: Timestamp) -> Result<(), CommandError> {
        let Some(due) = self.store.load_jobs(&[job.no]).await?.pop() else { return Ok(()) };
        let (_, members) = self.store.members().await?;
        let live = members.into_iter().find(|member| member.state == NodeState::Live);
        let (Some(next_at), Some(node)) = (due.next_at, live) else { return Ok(()) };
        let definition = &job.definition;
        let average = definition.average(job.history.average_good_duration);
        let time = DueTime { due: next_at, now, waited: false, average, fired: due.fired };
        let advanced = advance(definition, time);
        let start = advanced.fire.map(|time| {
            let waited = Waited { since: time, priority: None, aging: &self.aging };
            let deadline = must_start_by(job, time);
            (time, Start::Queued(Ticket::new(definition, deadline, average, now, waited)))
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

    /// Settles all that goes on of a job. Says whether it was anything.
    async fn settle(
        &self,
        scope: &Scope,
        job: &Job,
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Result<bool, CommandError> {
        let mut was_settled = false;
        for (key, seen) in self.going_on(scope, job).await? {
            let Some(verdict) = self.verdict(job, key, seen, wanted, now) else { continue };
            let settle = Settle { key, seen, at: now, verdict };
            if self.store.settle(scope, settle.clone()).await? {
                was_settled = true;
                self.tell_settled(scope, &settle, key);
            }
        }
        if was_settled {
            self.announce(Signal::Jobs).await;
            if wanted == AdminStatus::Queued {
                self.announce(Signal::Ready).await;
            }
        }
        Ok(was_settled)
    }

    fn verdict(
        &self,
        job: &Job,
        key: RunKey,
        seen: Seen,
        wanted: AdminStatus,
        now: Timestamp,
    ) -> Option<Verdict> {
        let definition = &job.definition;
        let (outcome, error) = match (wanted, seen) {
            (AdminStatus::Success, _) => (Outcome::Completed, None),
            (AdminStatus::Failed, _) => {
                (Outcome::Failed, Some("somebody set it to failed".to_owned()))
            }
            (AdminStatus::Queued, Seen::Running { .. }) => {
                let waited = Waited { since: key.scheduled_at, priority: None, aging: &self.aging };
                let deadline = must_start_by(job, key.scheduled_at);
                let from = now.saturating_add(LET_GO);
                let average = definition.average(job.history.average_good_duration);
                let ticket = Ticket::new(definition, deadline, average, from, waited);
                let open_from = ticket.open_from.or(Some(from));
                return Some(Verdict::Queued(Box::new(Ticket { open_from, ..ticket })));
            }
            (AdminStatus::Queued, Seen::Waiting) | (AdminStatus::Crawling, _) => return None,
        };
        // As of a run that somebody ended: its failure stops no job, and is not tried again.
        let ended = Ended {
            attempt: key.attempt,
            outcome: Outcome::Cancelled,
            again: Again::AsUsual,
            started_at: now,
            finished_at: now,
        };
        Some(Verdict::Ended { outcome, error, then: after_end(definition, ended, 0.0) })
    }

    /// What waits and runs of a job.
    async fn going_on(
        &self,
        scope: &Scope,
        job: &Job,
    ) -> Result<Vec<(RunKey, Seen)>, CommandError> {
        let waiting = self.store.waiting_of(scope, job.id, None, Now::Database).await?;
        let mut found: Vec<(RunKey, Seen)> =
            waiting.into_iter().map(|waiting| (waiting.key, Seen::Waiting)).collect();
        let filter = RunFilter { job: Some(job.id) };
        let (mut after, mut looked_at) = (None, 0);
        while found.len() < job.live as usize && looked_at < RUNS_LOOKED_AT {
            let page = PageRequest { limit: RUNS_AT_ONCE, offset: 0, after };
            let page = self.store.list_runs(scope, filter, page).await?;
            looked_at += RUNS_AT_ONCE;
            let running = page.items.iter().filter(|run| run.status == RunStatus::Running);
            found.extend(running.filter_map(|run| {
                let started_at = run.started_at?;
                Some((run.key, Seen::Running { fence: run.fence, started_at }))
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Counts an end, and tells it to those who listen, as whoever ran it would have.
    fn tell_settled(&self, scope: &Scope, settle: &Settle, key: RunKey) {
        let Some(end) = settle.finish(scope.tenant, key, evenkeel_core::lease::Fence::NONE) else {
            return;
        };
        let outcome = RunStatus::from(end.outcome).as_str();
        metrics::counter!("evenkeel_runs_ended_total", "outcome" => outcome).increment(1);
        if self.store.events().are_listened() {
            self.store.events().tell(NewEvent::of_end(&end));
        }
    }
}

/// By when the run for a time must start, as far as that time alone tells.
fn must_start_by(job: &Job, time: Timestamp) -> Timestamp {
    let before = time.saturating_sub(Span::from_micros(1));
    let over_by = job.definition.must_be_over_by(time, before);
    over_by.saturating_sub(job.definition.average(None))
}
