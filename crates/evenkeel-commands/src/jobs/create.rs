//! Creates single jobs; concurrent requests share a transaction.
//!
//! A create request that arrives while no transaction runs is processed at once. Create requests
//! that arrive during a transaction are combined in the next transaction. Under load one commit
//! therefore serves many create requests, and no request waits for others to arrive.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenkeel_core::{Definition, History, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    EventKind, Job, JobState, NewJob, Now, Registered, Scope, Signal, StoreError,
};
use tokio::sync::oneshot;

use super::Jobs;
use super::publish::publish_at;
use super::trigger::no_time_left;
use crate::balance::{PlacementReason, Placing};
use crate::{CommandError, JobSpec, Result};

/// Maximum number of jobs that are created in one transaction; a higher maximum would delay the
/// first requests.
const BATCH_MAX: usize = 500;

/// A new job, or the existing job with the same deduplication key.
#[derive(Clone, PartialEq, Debug)]
pub struct CreatedJob {
    pub job: Job,
    /// Time at which the store created or read the job.
    pub now: Timestamp,
    /// True if a job with the same deduplication key already existed; `None` for a job without such
    /// a key.
    pub deduplicated: Option<bool>,
}

type CreateAnswer = Result<CreatedJob>;

/// A create request that waits for its transaction.
struct CreateRequest {
    scope: Scope,
    spec: JobSpec,
    reply: oneshot::Sender<CreateAnswer>,
}

#[derive(Default)]
pub(super) struct Pending {
    requests: VecDeque<CreateRequest>,
    /// True while a task processes the waiting create requests.
    has_task: bool,
}

impl Jobs {
    /// Creates a job, even if the caller stops waiting for the result.
    pub(super) async fn create_shared(&self, scope: &Scope, spec: JobSpec) -> CreateAnswer {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut pending = lock(&self.pending);
            pending.requests.push_back(CreateRequest { scope: *scope, spec, reply });
            !std::mem::replace(&mut pending.has_task, true)
        };
        if is_first {
            // Create requests are processed in a separate task, because the first caller may stop
            // waiting while others still wait.
            tokio::spawn(self.clone().process());
        }
        answer.await.unwrap_or_else(|_| {
            Err(unavailable("the server stopped processing the request").into())
        })
    }

    async fn process(self) {
        let _guard = ResetOnPanic(&self.pending);
        loop {
            let mut requests: Vec<CreateRequest> = {
                let mut pending = lock(&self.pending);
                let count = pending.requests.len().min(BATCH_MAX);
                // `has_task` changes while the list of requests is locked, so that the next create
                // request sees that no task is running.
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

    /// Creates the requested jobs of one tenant, and answers each request.
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
            let id = self.new_id(now);
            let choose = |job: &_, after| placing.choose(id, job, None, after);
            match prepare_job(request.spec, id, now, choose) {
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
        match self.register_each(&scope, &jobs, now).await {
            Ok(answers) => {
                for ((job, reply), answer) in jobs.into_iter().zip(replies).zip(answers) {
                    let created = match answer {
                        Ok(answer) => self.created(&scope, job, answer, now).await,
                        Err(error) => Err(error.into()),
                    };
                    let is_new = |created: &&CreatedJob| created.deduplicated != Some(true);
                    let id = created.as_ref().ok().filter(is_new).map(|created| created.job.id);
                    id.into_iter().for_each(|id| placing.confirm(id));
                    publish_at(&*self.store, &scope, EventKind::JobCreated, id.into_iter(), now);
                    let _ = reply.send(created);
                }
            }
            Err(error) => refuse_all(replies.into_iter(), &error),
        }
        self.announce(Signal::Jobs).await;
    }

    async fn begin(&self, scope: &Scope) -> Result<(Timestamp, Placing), StoreError> {
        let now = self.store.now().await?;
        Ok((now, self.balance.placing(scope, now, PlacementReason::New).await?))
    }

    /// Registers jobs in one transaction. If an invalid job fails the whole transaction, the jobs
    /// are registered one by one, until the store is unavailable.
    pub(super) async fn register_each(
        &self,
        scope: &Scope,
        jobs: &[NewJob],
        now: Timestamp,
    ) -> Result<Vec<Result<Registered, StoreError>>, StoreError> {
        match self.store.register(scope, jobs.to_vec(), Now::At(now)).await {
            Ok(registered) => return Ok(registered.into_iter().map(Ok).collect()),
            Err(error) if error.is_outage() || jobs.len() == 1 => return Err(error),
            Err(_) => {}
        }
        let mut answers: Vec<Result<Registered, StoreError>> = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.push(match answers.last() {
                Some(Err(outage)) if outage.is_outage() => Err(outage.for_another()),
                _ => self.register_one(scope, job, now).await,
            });
        }
        Ok(answers)
    }

    async fn register_one(
        &self,
        scope: &Scope,
        job: &NewJob,
        now: Timestamp,
    ) -> Result<Registered, StoreError> {
        let answers = self.store.register(scope, vec![job.clone()], Now::At(now)).await?;
        answers.into_iter().next().ok_or_else(|| unavailable("the store returned no result"))
    }

    /// Returns the job that was registered at `now`. A new job is not read back from the store. An
    /// existing job with the same deduplication key is read; if it was deleted in the meantime, the
    /// new job is registered again.
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
            answer = self.register_one(scope, &job, now).await?;
        }
        Err(unavailable("jobs with the same dedup_key kept appearing and disappearing").into())
    }
}

/// Maximum number of tries to register a job if the existing duplicate is deleted each time.
pub(super) const TRIES: usize = 5;

/// Drops all waiting create requests if the task that processes them panics. The callers of dropped
/// requests get an error, and the next create request starts a new task.
struct ResetOnPanic<'a>(&'a Mutex<Pending>);

impl Drop for ResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *lock(self.0) = Pending::default();
        }
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds the new job that `spec` describes; `choose` returns its first run time after `now`.
pub(crate) fn prepare_job(
    spec: JobSpec,
    id: JobId,
    now: Timestamp,
    choose: impl FnOnce(&Definition, Timestamp) -> Option<Timestamp>,
) -> Result<NewJob> {
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
