//! Single creates, many of which share a transaction.
//!
//! Whoever comes while nothing is under way is served at once. Whoever comes meanwhile waits for
//! that to end and goes with all others that came: under load a commit serves many, and nobody
//! waits for company.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::chance::Chance;
use evenkeel_core::{Definition, History, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    EventKind, Job, JobState, NewJob, Now, Registered, Scope, Signal, Store, StoreError,
};
use tokio::sync::oneshot;

use super::change::{announce, no_time_left};
use super::tell::tell_at;
use crate::balance::{Balance, Occasion, Placing};
use crate::{CommandError, JobSpec};

/// Jobs in one transaction at most: more would keep the first ones waiting.
const TOGETHER_MAX: usize = 500;

/// A job that was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Made {
    /// As it is now.
    pub job: Job,
    /// The moment of that.
    pub now: Timestamp,
    /// It was there already; `None` if nobody wanted that looked at.
    pub deduplicated: Option<bool>,
}

/// What whoever waits is told.
type Answer = Result<Made, CommandError>;

/// Somebody who waits for a job.
struct Wish {
    scope: Scope,
    spec: JobSpec,
    reply: oneshot::Sender<Answer>,
}

#[derive(Default)]
struct Waiting {
    wishes: VecDeque<Wish>,
    /// Somebody serves them, until there are none.
    is_served: bool,
}

/// Creates jobs one by one, together.
pub(super) struct Creator {
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
    balance: Arc<Balance>,
    waiting: Mutex<Waiting>,
}

impl Creator {
    pub(super) fn new(
        store: Arc<dyn Store>,
        chance: Arc<dyn Chance>,
        balance: Arc<Balance>,
    ) -> Self {
        Self { store, chance, balance, waiting: Mutex::default() }
    }

    /// Creates a job. Once asked for, it is created even if nobody waits for the answer.
    pub(super) async fn create(self: &Arc<Self>, scope: &Scope, spec: JobSpec) -> Answer {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut waiting = self.lock();
            waiting.wishes.push_back(Wish { scope: *scope, spec, reply });
            !std::mem::replace(&mut waiting.is_served, true)
        };
        if is_first {
            // In a task of its own: whoever came first may go away while the others wait.
            tokio::spawn(Arc::clone(self).serve());
        }
        answer.await.unwrap_or_else(|_| Err(given_up("the server gave it up").into()))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>) {
        let _guard = Serving(&self);
        loop {
            let mut wishes: Vec<Wish> = {
                let mut waiting = self.lock();
                let count = waiting.wishes.len().min(TOGETHER_MAX);
                // In the same breath: whoever comes later must find that nobody serves.
                waiting.is_served = count > 0;
                waiting.wishes.drain(..count).collect()
            };
            if wishes.is_empty() {
                return;
            }
            wishes.sort_by_key(|wish| wish.scope.tenant);
            while let Some(tenant) = wishes.last().map(|wish| wish.scope.tenant) {
                let first = wishes.partition_point(|wish| wish.scope.tenant < tenant);
                self.make(wishes.split_off(first)).await;
            }
        }
    }

    /// Creates jobs of one tenant and tells each who waits for it.
    async fn make(&self, wishes: Vec<Wish>) {
        let Some(scope) = wishes.first().map(|wish| wish.scope) else { return };
        let (now, mut placing) = match self.begin(&scope).await {
            Ok((now, placing)) => (now, placing.in_bulk(wishes.len() > 1)),
            Err(error) => return refuse_all(wishes.into_iter().map(|wish| wish.reply), &error),
        };
        let (mut jobs, mut replies) = (Vec::new(), Vec::new());
        for wish in wishes {
            let id = JobId::new(now, self.chance.ten_bytes());
            match settled(wish.spec, id, now, |job, after| placing.first(id, job, after)) {
                Ok(job) => {
                    jobs.push(job);
                    replies.push(wish.reply);
                }
                // Whoever is gone needs no answer, here and below.
                Err(error) => drop(wish.reply.send(Err(error))),
            }
        }
        if jobs.is_empty() {
            return;
        }
        match self.store.register(&scope, jobs.clone(), Now::At(now)).await {
            Ok(answers) => {
                for ((job, reply), answer) in jobs.into_iter().zip(replies).zip(answers) {
                    let made = self.made(&scope, job, answer, now).await;
                    self.reply(&scope, reply, made, now, &mut placing);
                }
            }
            // One of them may have spoilt it for the others.
            Err(error) if !error.is_outage() && jobs.len() > 1 => {
                for (job, reply) in jobs.into_iter().zip(replies) {
                    let made = self.make_alone(&scope, job, now).await;
                    self.reply(&scope, reply, made, now, &mut placing);
                }
            }
            Err(error) => refuse_all(replies.into_iter(), &error),
        }
        announce(&*self.store, Signal::Jobs).await;
    }

    async fn begin(&self, scope: &Scope) -> Result<(Timestamp, Placing), StoreError> {
        let now = self.store.now().await?;
        Ok((now, self.balance.placing(scope, now, Occasion::New).await?))
    }

    fn reply(
        &self,
        scope: &Scope,
        reply: oneshot::Sender<Answer>,
        made: Answer,
        now: Timestamp,
        placing: &mut Placing,
    ) {
        let is_new = |made: &&Made| made.deduplicated != Some(true);
        let id = made.as_ref().ok().filter(is_new).map(|made| made.job.id);
        id.into_iter().for_each(|id| placing.keep(id));
        tell_at(&*self.store, scope, EventKind::JobCreated, id.into_iter(), now);
        let _ = reply.send(made);
    }

    async fn make_alone(&self, scope: &Scope, job: NewJob, now: Timestamp) -> Answer {
        let answers = self.store.register(scope, vec![job.clone()], Now::At(now)).await?;
        match answers.into_iter().next() {
            Some(answer) => self.made(scope, job, answer, now).await,
            None => Err(given_up("the store gave no answer").into()),
        }
    }

    /// The job as it is in the store now that it was registered at `now`: nothing has become of a new
    /// one, so nobody needs to look. One that is there already is looked at; should it be gone by then,
    /// the other is registered after all.
    async fn made(
        &self,
        scope: &Scope,
        job: NewJob,
        mut answer: Registered,
        now: Timestamp,
    ) -> Answer {
        for _ in 0..TRIES {
            match answer {
                Registered::Created { no, number } => {
                    let deduplicated = job.about.dedup.is_some().then_some(false);
                    let job = new_job(job, (no, number), scope.tenant, now);
                    return Ok(Made { job, now, deduplicated });
                }
                Registered::NameTaken(id) => return Err(CommandError::NameTaken { id }),
                Registered::Duplicate(id) => {
                    if let Some((job, now)) = self.store.get_with_now(scope, id).await? {
                        metrics::counter!("evenkeel_deduplicated_total").increment(1);
                        return Ok(Made { job, now, deduplicated: Some(true) });
                    }
                }
            }
            let again = self.store.register(scope, vec![job.clone()], Now::At(now)).await?;
            answer =
                again.into_iter().next().ok_or_else(|| given_up("the store gave no answer"))?;
        }
        Err(given_up("others with its dedup_key came and went").into())
    }
}

/// So often a job is registered because the one in its place was gone when it was looked at.
pub(super) const TRIES: usize = 5;

/// If serving ends by a panic, whoever waits is told, and the next one begins anew.
struct Serving<'a>(&'a Creator);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.lock() = Waiting::default();
        }
    }
}

/// A job that is to be created under `id` at `now`, with the first time after that, as `choose`
/// says.
pub(crate) fn settled(
    spec: JobSpec,
    id: JobId,
    now: Timestamp,
    choose: impl FnOnce(&Definition, Timestamp) -> Option<Timestamp>,
) -> Result<NewJob, CommandError> {
    let JobSpec { about, definition, exact, .. } = spec;
    let schedule = definition.schedule.settled(id, now, exact);
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
        good_runs: 0,
        bad_runs: 0,
        last_error: None,
    }
}

fn refuse_all(replies: impl Iterator<Item = oneshot::Sender<Answer>>, error: &StoreError) {
    for reply in replies {
        let _ = reply.send(Err(error.for_another().into()));
    }
}

fn given_up(why: &str) -> StoreError {
    StoreError::Unavailable(why.into())
}
