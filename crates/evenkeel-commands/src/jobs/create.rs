//! Creates single jobs; concurrent requests share a transaction.
//!
//! A request that arrives while no transaction runs is processed at once. Requests that arrive
//! during a transaction are combined in the next transaction. Under load one commit therefore
//! serves many requests, and no request waits for others to arrive.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::chance::Chance;
use evenkeel_core::{Definition, History, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    EventKind, Job, JobState, NewJob, Now, Registered, Scope, Signal, Store, StoreError,
};
use tokio::sync::oneshot;

use super::publish::publish_at;
use super::trigger::{announce, no_time_left};
use crate::balance::{Balance, PlacementReason, Placing};
use crate::{CommandError, JobSpec};

/// Maximum number of jobs in a transaction; a larger number would delay the first requests.
const BATCH_MAX: usize = 500;

/// A job that was created, or that already existed.
#[derive(Clone, PartialEq, Debug)]
pub struct CreatedJob {
    pub job: Job,
    /// Time at which the job had this state.
    pub now: Timestamp,
    /// True if the job already existed; `None` without a deduplication key.
    pub deduplicated: Option<bool>,
}

type CreateAnswer = Result<CreatedJob, CommandError>;

/// A create request that waits for its transaction.
struct CreateRequest {
    scope: Scope,
    spec: JobSpec,
    reply: oneshot::Sender<CreateAnswer>,
}

#[derive(Default)]
struct Pending {
    requests: VecDeque<CreateRequest>,
    /// True while a task processes the waiting requests.
    has_task: bool,
}

pub(super) struct Creator {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    balance: Arc<Balance>,
    pending: Mutex<Pending>,
}

impl Creator {
    pub(super) fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        balance: Arc<Balance>,
    ) -> Self {
        Self { store, chance, balance, pending: Mutex::default() }
    }

    /// Creates a job. The job is created even if the caller stops waiting.
    pub(super) async fn create(self: &Arc<Self>, scope: &Scope, spec: JobSpec) -> CreateAnswer {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut pending = self.lock();
            pending.requests.push_back(CreateRequest { scope: *scope, spec, reply });
            !std::mem::replace(&mut pending.has_task, true)
        };
        if is_first {
            // The requests are processed in a separate task, because the first caller may stop
            // waiting while others still wait.
            tokio::spawn(Arc::clone(self).process());
        }
        answer.await.unwrap_or_else(|_| {
            Err(unavailable("the server stopped processing the request").into())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn process(self: Arc<Self>) {
        let _guard = ResetOnPanic(&self);
        loop {
            let mut requests: Vec<CreateRequest> = {
                let mut pending = self.lock();
                let count = pending.requests.len().min(BATCH_MAX);
                // The flag changes under the same lock, so that a later request sees that no task
                // is running.
                pending.has_task = count > 0;
                pending.requests.drain(..count).collect()
            };
            if requests.is_empty() {
                return;
            }
            requests.sort_by_key(|request| request.scope.tenant);
            while let Some(tenant) = requests.last().map(|request| request.scope.tenant) {
                let first = requests.partition_point(|request| request.scope.tenant < tenant);
                self.create_batch(requests.split_off(first)).await;
            }
        }
    }

    /// Creates the jobs of one tenant and answers each request.
    async fn create_batch(&self, requests: Vec<CreateRequest>) {
        let Some(scope) = requests.first().map(|request| request.scope) else { return };
        let (now, mut placing) = match self.begin(&scope).await {
            Ok((now, placing)) => (now, placing.in_bulk(requests.len() > 1)),
            Err(error) => {
                return refuse_all(requests.into_iter().map(|request| request.reply), &error);
            }
        };
        let (mut jobs, mut replies) = (Vec::new(), Vec::new());
        for request in requests {
            let id = JobId::new(now, self.chance.ten_bytes());
            match prepare_job(request.spec, id, now, |job, after| placing.first(id, job, after)) {
                Ok(job) => {
                    jobs.push(job);
                    replies.push(request.reply);
                }
                // Sending a reply fails if the caller has stopped waiting, which is fine.
                Err(error) => drop(request.reply.send(Err(error))),
            }
        }
        if jobs.is_empty() {
            return;
        }
        match self.store.register(&scope, jobs.clone(), Now::At(now)).await {
            Ok(answers) => {
                for ((job, reply), answer) in jobs.into_iter().zip(replies).zip(answers) {
                    let created = self.created(&scope, job, answer, now).await;
                    self.reply(&scope, reply, created, now, &mut placing);
                }
            }
            // One invalid job may have failed the whole transaction, so the jobs are created one by
            // one.
            Err(error) if !error.is_outage() && jobs.len() > 1 => {
                for (job, reply) in jobs.into_iter().zip(replies) {
                    let created = self.create_alone(&scope, job, now).await;
                    self.reply(&scope, reply, created, now, &mut placing);
                }
            }
            Err(error) => refuse_all(replies.into_iter(), &error),
        }
        announce(&*self.store, Signal::Jobs).await;
    }

    async fn begin(&self, scope: &Scope) -> Result<(Timestamp, Placing), StoreError> {
        let now = self.store.now().await?;
        Ok((now, self.balance.placing(scope, now, PlacementReason::New).await?))
    }

    fn reply(
        &self,
        scope: &Scope,
        reply: oneshot::Sender<CreateAnswer>,
        created: CreateAnswer,
        now: Timestamp,
        placing: &mut Placing,
    ) {
        let is_new = |created: &&CreatedJob| created.deduplicated != Some(true);
        let id = created.as_ref().ok().filter(is_new).map(|created| created.job.id);
        id.into_iter().for_each(|id| placing.confirm(id));
        publish_at(&*self.store, scope, EventKind::JobCreated, id.into_iter(), now);
        let _ = reply.send(created);
    }

    async fn create_alone(&self, scope: &Scope, job: NewJob, now: Timestamp) -> CreateAnswer {
        let answers = self.store.register(scope, vec![job.clone()], Now::At(now)).await?;
        match answers.into_iter().next() {
            Some(answer) => self.created(scope, job, answer, now).await,
            None => Err(unavailable("the store returned no result").into()),
        }
    }

    /// Returns the job that was registered at `now`. A new job is not read back from the store. An
    /// existing job is read; if it was deleted in the meantime, the new job is registered again.
    async fn created(
        &self,
        scope: &Scope,
        job: NewJob,
        mut answer: Registered,
        now: Timestamp,
    ) -> CreateAnswer {
        for _ in 0..TRIES {
            match answer {
                Registered::Created { no, number } => {
                    let deduplicated = job.about.dedup.is_some().then_some(false);
                    let job = new_job(job, (no, number), scope.tenant, now);
                    return Ok(CreatedJob { job, now, deduplicated });
                }
                Registered::NameTaken(id) => return Err(CommandError::NameTaken { id }),
                Registered::Duplicate(id) => {
                    if let Some((job, now)) = self.store.get_with_now(scope, id).await? {
                        metrics::counter!("evenkeel_deduplicated_total").increment(1);
                        return Ok(CreatedJob { job, now, deduplicated: Some(true) });
                    }
                }
            }
            let again = self.store.register(scope, vec![job.clone()], Now::At(now)).await?;
            answer = again
                .into_iter()
                .next()
                .ok_or_else(|| unavailable("the store returned no result"))?;
        }
        Err(unavailable("jobs with the same dedup_key kept appearing and disappearing").into())
    }
}

/// Maximum number of tries to register a job if the existing duplicate keeps disappearing.
pub(super) const TRIES: usize = 5;

/// Drops all waiting requests if the task panics. The callers of dropped requests get an error, and
/// the next request starts a new task.
struct ResetOnPanic<'a>(&'a Creator);

impl Drop for ResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.lock() = Pending::default();
        }
    }
}

/// Prepares a new job with the id `id`; `choose` returns its first run time after `now`.
pub(crate) fn prepare_job(
    spec: JobSpec,
    id: JobId,
    now: Timestamp,
    choose: impl FnOnce(&Definition, Timestamp) -> Option<Timestamp>,
) -> Result<NewJob, CommandError> {
    let JobSpec { about, definition, exact, .. } = spec;
    let schedule = definition.schedule.resolved(id, now, exact);
    let definition = Definition { schedule, ..definition };
    match choose(&definition, now) {
        Some(next_at) => Ok(NewJob { id, about, definition, next_at: Some(next_at) }),
        None => Err(CommandError::Invalid(vec![no_time_left(&definition, now)])),
    }
}

pub(crate) fn new_job(
    job: NewJob,
    (no, number): (JobNo, i64),
    tenant: TenantNo,
    now: Timestamp,
) -> Job {
    let NewJob { id, about, definition, next_at } = job;
    Job {
        no,
        id,
        number,
        tenant,
        about,
        definition,
        state: JobState::Active,
        generation: 1,
        created_at: now,
        updated_at: now,
        next_at,
        last_fired_at: None,
        live: 0,
        waiting: 0,
        executions: 0,
        last_outcome: None,
        history: History::default(),
        since: now,
        fired: 0,
        running_since: None,
        running: None,
        retry_count: 0,
        stopped_at: None,
        note: None,
        succeeded_runs: 0,
        failed_runs: 0,
        last_error: None,
    }
}

fn refuse_all(replies: impl Iterator<Item = oneshot::Sender<CreateAnswer>>, error: &StoreError) {
    for reply in replies {
        let _ = reply.send(Err(error.for_another().into()));
    }
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.into())
}
