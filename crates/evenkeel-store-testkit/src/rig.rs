//! A store with one tenant and one live node, and helper functions for test cases.

use std::any::Any;
use std::sync::Arc;

use evenkeel_core::aging::Aging;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::Limits;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, NodeNo, Shard, Span, Timestamp};
use evenkeel_store::{
    AfterLoss, Attachments, Attempt, AttemptFilter, Cancellation, Census, Claim, ClaimedAttempt,
    DelayedAttempt, DueJob, Finish, FinishResult, Fire, FireDelayed, FireResult, Hook, Job,
    LookAhead, LostEnd, NewJob, OwnedAttempt, Page, PageRequest, QueueWait, Registered, Requeue,
    Results, Role, Scope, Start, Store, Then, Trigger, Triggered, WaitingAttempt,
};

use crate::fixtures::{
    Begin, at, fire_of, new_node, now, plain_trigger, queue_entry_of, queue_entry_with,
};
use crate::{Opened, Reopen};

/// Weight of the newest duration in the average duration, in all cases.
pub const ALPHA: f64 = 0.37;

/// The effect of a result that finishes the run and keeps the schedule of the job.
pub const OVER: Then = Then::EndRun { stop_job: false, next_at: None };

/// The public id and the internal number of a registered job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Known {
    pub no: JobNo,
    pub id: JobId,
}

/// An attempt and the fence of its owner.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub key: AttemptKey,
    pub fence: Fence,
}

/// A store that a test case uses. All functions panic if the store returns an error.
pub struct Rig {
    pub store: Arc<dyn Store>,
    /// The first tenant.
    pub scope: Scope,
    /// The first node, which is live from [`START`](crate::fixtures::START) on.
    pub node: NodeNo,
    reopen: Option<Reopen>,
    // `guard` must stay the last field, because fields are dropped in their order.
    guard: Box<dyn Any + Send>,
}

impl Rig {
    /// Creates a tenant and a node in an empty database.
    pub async fn new(opened: Opened) -> Self {
        let Opened { store, guard, reopen } = opened;
        let tenant = store.tenant("main").await.expect("a tenant can be created");
        let joined = store.join(&new_node("node-1"), now(0)).await.expect("a node can join");
        let scope = Scope { tenant, role: Role::Admin };
        Self { store, scope, node: joined.node, reopen, guard }
    }

    /// Returns another handle to the same database if the store can be shared, else the same
    /// handle.
    pub async fn second(&self) -> Arc<dyn Store> {
        match &self.reopen {
            Some(reopen) if self.store.is_shared() => reopen().await,
            Some(_) | None => Arc::clone(&self.store),
        }
    }

    pub async fn restart(self) -> Self {
        let Self { store, scope, node, reopen, guard } = self;
        let store = match &reopen {
            Some(reopen) => {
                drop(store);
                reopen().await
            }
            None => store,
        };
        Self { store, scope, node, reopen, guard }
    }

    pub async fn tenant(&self, name: &str) -> Scope {
        let tenant = self.store.tenant(name).await.expect("a tenant can be created");
        Scope { tenant, role: Role::Admin }
    }

    pub async fn join(&self, name: &str, secs: i64) -> NodeNo {
        self.store.join(&new_node(name), now(secs)).await.expect("a node can join").node
    }

    /// Registers jobs at [`START`](crate::fixtures::START).
    pub async fn register(&self, jobs: Vec<NewJob>) -> Vec<Registered> {
        self.store.register(&self.scope, jobs, now(0)).await.expect("jobs can be registered")
    }

    /// Registers one job, which must be accepted.
    pub async fn add(&self, job: NewJob) -> Known {
        let id = job.id;
        match self.register(vec![job]).await[..] {
            [Registered::Created { no, .. }] => Known { no, id },
            ref other => panic!("not created: {other:?}"),
        }
    }

    pub async fn add_for(&self, scope: &Scope, job: NewJob) -> Known {
        let id = job.id;
        let answers = self.store.register(scope, vec![job], now(0)).await;
        match answers.expect("jobs can be registered")[..] {
            [Registered::Created { no, .. }] => Known { no, id },
            ref other => panic!("not created: {other:?}"),
        }
    }

    pub async fn add_all(&self, jobs: Vec<NewJob>) -> Vec<Known> {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let registered = self.register(jobs).await;
        ids.into_iter()
            .zip(registered)
            .map(|(id, answer)| match answer {
                Registered::Created { no, .. } => Known { no, id },
                Registered::NameTaken(by) | Registered::Duplicate(by) => panic!("it is {by}"),
            })
            .collect()
    }

    /// Returns the job as API users see it.
    pub async fn job(&self, known: Known) -> Job {
        let found = self.store.get(&self.scope, known.id).await.expect("a job can be read");
        found.expect("the job exists")
    }

    /// Returns the job as the scheduler sees it.
    pub async fn due(&self, known: Known) -> DueJob {
        let mut loaded = self.store.load_jobs(&[known.no]).await.expect("jobs can be loaded");
        loaded.pop().expect("the job exists")
    }

    /// Fires jobs on the first node.
    pub async fn fire(&self, batch: Vec<Fire>, secs: i64) -> Vec<FireResult> {
        self.fire_for(self.node, batch, secs).await
    }

    pub async fn fire_for(&self, node: NodeNo, batch: Vec<Fire>, secs: i64) -> Vec<FireResult> {
        self.store.fire(node, batch, now(secs)).await.expect("jobs can be fired").results
    }

    /// Fires the scheduled time that `evenkeel-core` decides for a job. The first node claims the
    /// attempt.
    pub async fn start(&self, known: Known, secs: i64) -> Held {
        self.start_on(self.node, known, secs).await
    }

    /// Fires the scheduled time that `evenkeel-core` decides for a job. `node` claims the attempt.
    pub async fn start_on(&self, node: NodeNo, known: Known, secs: i64) -> Held {
        let fire = fire_of(&self.due(known).await, at(secs), Begin::Claimed);
        let (time, _) = *fire.start.as_ref().expect("the job has a time to fire");
        match self.fire_for(node, vec![fire], secs).await[..] {
            [FireResult::Fired(fence)] => Held { key: AttemptKey::regular(known.no, time), fence },
            ref other => panic!("not fired: {other:?}"),
        }
    }

    /// Fires the scheduled time that `evenkeel-core` decides for a job. The attempt is queued.
    pub async fn queue(&self, known: Known, secs: i64) -> AttemptKey {
        let fire = fire_of(&self.due(known).await, at(secs), Begin::Queued);
        let (time, _) = *fire.start.as_ref().expect("the job has a time to fire");
        match self.fire(vec![fire], secs).await[..] {
            [FireResult::Fired(_)] => AttemptKey::regular(known.no, time),
            ref other => panic!("not fired: {other:?}"),
        }
    }

    /// Claims attempts of the default pool for the first node.
    pub async fn claim(&self, capacity: usize, secs: i64) -> Vec<ClaimedAttempt> {
        self.claim_for(self.node, capacity, secs).await
    }

    /// Claims attempts of the default pool for a node.
    pub async fn claim_for(&self, node: NodeNo, capacity: usize, secs: i64) -> Vec<ClaimedAttempt> {
        let claim = claim_of(node, capacity);
        self.store.claim(&claim, now(secs)).await.expect("attempts can be claimed").attempts
    }

    /// Returns the waiting attempts of a job, with the default aging settings.
    pub async fn waiting_of(&self, scope: &Scope, job: JobId) -> Vec<WaitingAttempt> {
        let returned =
            self.store.waiting_attempts(scope, job, Some(Aging::default()), now(100)).await;
        returned.expect("waiting attempts can be read")
    }

    /// Claims the only queued attempt.
    pub async fn claim_one(&self, secs: i64) -> Held {
        match &self.claim(10, secs).await[..] {
            [only] => Held { key: only.key, fence: only.fence },
            other => panic!("not exactly one waiting attempt: {other:?}"),
        }
    }

    /// Returns the result of a successful attempt that took five seconds and finishes its run.
    pub fn success(&self, held: Held) -> Finish {
        self.end(held, Outcome::Completed, OVER)
    }

    /// Returns the result of a failed attempt that is retried at `due`.
    pub fn retry(&self, held: Held, due: Timestamp) -> Finish {
        self.end(held, Outcome::Failed, Then::Retry { due })
    }

    /// Returns a result of an attempt that took five seconds.
    pub fn end(&self, held: Held, outcome: Outcome, then: Then) -> Finish {
        Finish {
            key: held.key,
            fence: held.fence,
            tenant: self.scope.tenant,
            outcome,
            started_at: held.key.scheduled_at,
            finished_at: held.key.scheduled_at.saturating_add(Span::from_secs(5)),
            results: Results::default(),
            then,
            priority: None,
            attachments: Attachments::default(),
            judge: false,
            unstored_since: None,
            hook: Hook::None,
        }
    }

    /// Finishes attempts of the first node.
    pub async fn finish_all(&self, batch: Vec<Finish>) -> Vec<FinishResult> {
        self.store.finish(self.node, batch, ALPHA).await.expect("attempts can be finished")
    }

    /// Finishes one attempt of the first node.
    pub async fn finish(&self, finish: Finish) -> FinishResult {
        self.finish_all(vec![finish]).await[0]
    }

    pub async fn run_successfully(&self, known: Known, secs: i64) -> AttemptKey {
        let held = self.start(known, secs).await;
        assert_eq!(self.finish(self.success(held)).await, FinishResult::Done);
        held.key
    }

    /// Returns the request that puts an attempt back into the queue.
    pub async fn requeue_of(&self, held: Held, known: Known, crashed: bool) -> Requeue {
        let due = self.due(known).await;
        Requeue {
            key: held.key,
            fence: held.fence,
            tenant: self.scope.tenant,
            crashed,
            then: AfterLoss::Queue(queue_entry_of(
                &due, held.key.scheduled_at, held.key.scheduled_at,
            )),
        }
    }

    /// Returns the request that fails an attempt because its node was lost.
    pub fn lost_end(&self, held: Held, crashed: bool, then: Then, hook: Hook) -> Requeue {
        let end = LostEnd {
            started_at: held.key.scheduled_at,
            finished_at: at(64),
            error: "its node died".into(),
            then,
            hook,
            unstored_since: at(64),
        };
        Requeue {
            key: held.key,
            fence: held.fence,
            tenant: self.scope.tenant,
            crashed,
            then: AfterLoss::Fail(end),
        }
    }

    /// Requeues an attempt of the first node.
    pub async fn requeue(&self, requeue: Requeue, secs: i64) -> bool {
        let batch = vec![requeue];
        self.store.requeue(self.node, batch, now(secs)).await.expect("attempts can be requeued")[0]
    }

    /// Calls [`look_ahead`](evenkeel_store::ScheduleStore::look_ahead) for all shards.
    pub async fn look(&self, until: i64, limit: u32) -> LookAhead {
        let shards: Vec<Shard> = Shard::all().collect();
        let look = self.store.look_ahead(&shards, at(until), limit, now(until)).await;
        look.expect("the scheduler can look ahead")
    }

    /// Returns the retries and triggers of all shards that are due up to `until`.
    pub async fn delayed(&self, until: i64) -> Vec<DelayedAttempt> {
        self.look(until, 10_000).await.delayed
    }

    pub async fn fire_delayed(
        &self,
        delayed: &[DelayedAttempt],
        begin: Begin,
        secs: i64,
    ) -> Vec<FireResult> {
        let batch = delayed.iter().map(|delayed| delayed_fire_of(delayed, begin)).collect();
        let fired = self.store.fire_delayed(self.node, batch, now(secs)).await;
        fired.expect("delayed attempts can be fired").results
    }

    /// Triggers a run, which must be accepted.
    pub async fn trigger(&self, known: Known, n: u32, secs: i64) -> AttemptKey {
        self.trigger_with(known, plain_trigger(n), secs).await
    }

    pub async fn trigger_with(&self, known: Known, ask: Trigger, secs: i64) -> AttemptKey {
        let asked = self.store.trigger(&self.scope, known.id, ask, now(secs)).await;
        match asked.expect("a run can be triggered") {
            Triggered::Accepted(key) => key,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub async fn find_run(&self, key: AttemptKey) -> Option<Attempt> {
        self.store.get_attempt(&self.scope, key).await.expect("a run can be read")
    }

    /// Returns an attempt, which must exist.
    pub async fn run(&self, key: AttemptKey) -> Attempt {
        self.find_run(key).await.expect("the run exists")
    }

    /// Returns a page of the attempts of one job or of all jobs.
    pub async fn runs_page(
        &self,
        known: Option<Known>,
        page: PageRequest<AttemptKey>,
    ) -> Page<Attempt, AttemptKey> {
        let filter = AttemptFilter { job: known.map(|known| known.id) };
        self.store.list_attempts(&self.scope, filter, page).await.expect("runs can be listed")
    }

    pub async fn runs_of(&self, known: Known) -> Vec<Attempt> {
        self.runs_page(Some(known), PageRequest::first(10_000)).await.items
    }

    /// For each attempt of a job, returns the scheduled time in seconds since
    /// [`START`](crate::fixtures::START) and the attempt number.
    pub async fn times_of(&self, known: Known) -> Vec<(i64, u16)> {
        self.runs_of(known).await.iter().map(|run| time_and_attempt(run.key)).collect()
    }

    pub async fn owned(&self, node: NodeNo) -> Vec<OwnedAttempt> {
        self.store.list_owned(node, 100_000).await.expect("owned attempts can be read")
    }

    /// Returns the attempts of the first node that were asked to stop.
    pub async fn cancellations(&self) -> Vec<Cancellation> {
        let returned = self.store.cancellations(self.node).await;
        let mut returned = returned.expect("cancellations can be read");
        returned.sort_unstable();
        returned
    }

    pub async fn census(&self) -> Census {
        self.store.census().await.expect("a census can be taken")
    }
}

/// Returns the request to stop an attempt.
pub fn cancelled(held: Held) -> Cancellation {
    Cancellation { key: held.key, superseded: false }
}

/// Returns a claim by a node for up to `capacity` attempts of the default pool.
pub fn claim_of(node: NodeNo, capacity: usize) -> Claim {
    Claim {
        node,
        node_name: "node-1".into(),
        pools: vec![DEFAULT_POOL.into()],
        capacity,
        guaranteed: [0; 3],
        aging: Aging::default(),
        limits: Limits::default(),
    }
}

/// Returns the request that fires a retry or trigger.
pub fn delayed_fire_of(delayed: &DelayedAttempt, begin: Begin) -> FireDelayed {
    let should_start_by = delayed.due.saturating_add(Span::from_secs(60));
    let start = match begin {
        Begin::Claimed => Start::Claimed,
        Begin::Queued => {
            let aging = &Aging::default();
            let waited = QueueWait { since: delayed.due, priority: delayed.priority, aging };
            Start::Queued(queue_entry_with(&delayed.job, should_start_by, delayed.due, waited))
        }
    };
    FireDelayed { due: delayed.due, key: delayed.key, tenant: delayed.job.tenant, start }
}

pub fn next_attempt(key: AttemptKey) -> AttemptKey {
    key.with_attempt(AttemptNo(key.attempt.0 + 1))
}

fn time_and_attempt(key: AttemptKey) -> (i64, u16) {
    let secs = (key.scheduled_at.as_micros() - at(0).as_micros()) / 1_000_000;
    (secs, key.attempt.0)
}
