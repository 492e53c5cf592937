//! A store that fails as real ones do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::chance::Chance;
use evenkeel_core::*;
use evenkeel_engine::RandomChance;
use evenkeel_store::*;
use evenkeel_store_testkit::model::ModelStore;
use tokio::sync::Notify;

use crate::bounds::{Bounds, claimed_times};

/// What can be wrong with the way from one node to the store.
#[derive(Default)]
pub struct Link {
    /// Nothing gets through; calls fail after a while.
    pub down: AtomicBool,
    /// The database takes no changes, but can be read: its disk is full.
    pub full: AtomicBool,
    /// Changes that it refused for that.
    pub refused: AtomicU64,
    /// The node stands still: calls are made only when it goes on.
    pub frozen: AtomicBool,
    thawed: Notify,
    /// Per 10,000 calls: fails before it is done.
    pub fail: AtomicU32,
    /// Per 10,000 calls: is done, but the answer is lost.
    pub lose_answer: AtomicU32,
    /// Per 10,000 calls: the answer is lost first and it is done later.
    pub late_commit: AtomicU32,
    /// Faults that happened.
    pub faults: AtomicU64,
}

impl Link {
    /// The node goes on.
    pub fn thaw(&self) {
        self.frozen.store(false, Ordering::Relaxed);
        self.thawed.notify_waiters();
    }

    async fn while_frozen(&self) {
        loop {
            let thawed = self.thawed.notified();
            if !self.frozen.load(Ordering::Relaxed) {
                return;
            }
            thawed.await;
        }
    }
}

/// One node's way to the model.
pub struct FaultyStore {
    pub inner: ModelStore,
    pub link: Arc<Link>,
    pub chance: RandomChance,
    pub bounds: Arc<Bounds>,
    /// How many schedulers each node has.
    pub parallel_batches: usize,
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("a fault of the simulation".into())
}

impl FaultyStore {
    fn happens(&self, per_ten_thousand: &AtomicU32) -> bool {
        let limit = u64::from(per_ten_thousand.load(Ordering::Relaxed));
        let happens = limit > 0 && self.chance.bits() % 10_000 < limit;
        if happens {
            self.link.faults.fetch_add(1, Ordering::Relaxed);
        }
        happens
    }

    async fn travel(&self) {
        tokio::time::sleep(Duration::from_micros(50 + self.chance.bits() % 2_000)).await;
    }

    async fn call<T, F>(&self, verb: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(
                ModelStore,
            )
                -> std::pin::Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>
            + Send
            + 'static,
    {
        self.travel().await;
        self.link.while_frozen().await;
        if self.link.down.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            return Err(unavailable());
        }
        if self.happens(&self.link.fail) {
            return Err(unavailable());
        }
        if self.happens(&self.link.late_commit) {
            let wait = Duration::from_millis(self.chance.bits() % 4_000);
            let inner = self.inner.clone();
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let _ = verb(inner).await;
            });
            return Err(unavailable());
        }
        let answer = verb(self.inner.clone()).await;
        self.travel().await;
        self.link.while_frozen().await;
        if self.link.down.load(Ordering::Relaxed) || self.happens(&self.link.lose_answer) {
            return Err(unavailable());
        }
        answer
    }
}

/// One verb: its arguments are made into owned ones and travel with the call.
macro_rules! through {
    ($self:ident, $verb:ident($($name:ident = $value:expr),*)) => {{
        $(let $name = $value;)*
        $self
            .change(stringify!($verb), move |inner| {
                Box::pin(async move { inner.$verb($($name.pass()),*).await })
            })
            .await
    }};
}

/// Owned arguments, passed the way the port wants them.
struct Ref<T>(T);
struct Own<T>(T);

impl<T> Own<T> {
    fn pass(self) -> T {
        self.0
    }
}

macro_rules! by_ref {
    ($($owned:ty => $borrowed:ty),* $(,)?) => {
        $(impl Ref<$owned> { fn pass(&self) -> &$borrowed { &self.0 } })*
    };
}

// After the macros, which it uses.
mod full;
mod nodes;
mod notes;
mod sides;
mod watch;

by_ref!(
    Scope => Scope, Vec<JobNo> => [JobNo], Vec<Shard> => [Shard], Vec<String> => [String],
    Vec<AttemptKey> => [AttemptKey], Vec<(AttemptKey, ClaimWindow)> => [(AttemptKey, ClaimWindow)],
    Vec<Supersede> => [Supersede], Vec<Postpone> => [Postpone],
    NewNode => NewNode, String => str,
);

#[async_trait]
impl JobStore for FaultyStore {
    async fn register(
        &self,
        scope: &Scope,
        jobs: Vec<NewJob>,
        now: Now,
    ) -> Result<Vec<Registered>, StoreError> {
        through!(self, register(scope = Ref(*scope), jobs = Own(jobs), now = Own(now)))
    }

    async fn register_paused(
        &self,
        scope: &Scope,
        job: NewJob,
        now: Now,
    ) -> Result<Registered, StoreError> {
        through!(self, register_paused(scope = Ref(*scope), job = Own(job), now = Own(now)))
    }

    async fn get(&self, scope: &Scope, id: JobId) -> Result<Option<Job>, StoreError> {
        through!(self, get(scope = Ref(*scope), id = Own(id)))
    }

    async fn get_with_now(
        &self,
        scope: &Scope,
        id: JobId,
    ) -> Result<Option<(Job, Timestamp)>, StoreError> {
        through!(self, get_with_now(scope = Ref(*scope), id = Own(id)))
    }

    async fn list_jobs(
        &self,
        scope: &Scope,
        filter: &JobFilter,
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Result<Page<Job, JobCursor>, StoreError> {
        self.inner.list_jobs(scope, filter, sort, page).await
    }

    async fn apply_commands(
        &self,
        scope: &Scope,
        orders: Vec<JobCommand>,
        now: Now,
    ) -> Result<Vec<Applied>, StoreError> {
        through!(self, apply_commands(scope = Ref(*scope), orders = Own(orders), now = Own(now)))
    }

    async fn purge(&self, scope: &Scope, id: JobId, limit: u32) -> Result<u64, StoreError> {
        self.inner.purge(scope, id, limit).await
    }

    async fn get_jobs(&self, scope: &Scope, ids: &[JobId]) -> Result<Vec<Job>, StoreError> {
        self.inner.get_jobs(scope, ids).await
    }

    async fn ids_of_numbers(
        &self,
        scope: &Scope,
        numbers: &[i64],
    ) -> Result<Vec<Option<JobId>>, StoreError> {
        self.inner.ids_of_numbers(scope, numbers).await
    }

    async fn jobs_named(
        &self,
        scope: &Scope,
        name: &str,
        limit: u32,
    ) -> Result<Vec<NamedJob>, StoreError> {
        self.inner.jobs_named(scope, name, limit).await
    }

    async fn job_counts(&self, scope: &Scope) -> Result<JobCounts, StoreError> {
        self.inner.job_counts(scope).await
    }

    async fn all_job_counts(&self) -> Result<JobCounts, StoreError> {
        self.inner.all_job_counts().await
    }

    async fn trigger(
        &self,
        scope: &Scope,
        id: JobId,
        ask: Trigger,
        now: Now,
    ) -> Result<Triggered, StoreError> {
        through!(self, trigger(scope = Ref(*scope), id = Own(id), ask = Own(ask), now = Own(now)))
    }

    async fn slot_loads(
        &self,
        scope: &Scope,
        slots: &[Slot],
        limit: u32,
    ) -> Result<Vec<SlotLoad>, StoreError> {
        self.inner.slot_loads(scope, slots, limit).await
    }
}

#[async_trait]
impl ScheduleStore for FaultyStore {
    async fn load_due(
        &self,
        shard: Shard,
        until: Slot,
        after: Option<JobNo>,
        limit: u32,
    ) -> Result<Vec<DueJob>, StoreError> {
        // Loading a cluster of 256 shards is 256 calls: they travel together.
        if self.link.down.load(Ordering::Relaxed) {
            return Err(unavailable());
        }
        self.inner.load_due(shard, until, after, limit).await
    }

    async fn load_jobs(&self, jobs: &[JobNo]) -> Result<Vec<DueJob>, StoreError> {
        through!(self, load_jobs(jobs = Ref(jobs.to_vec())))
    }

    async fn look_ahead(
        &self,
        shards: &[Shard],
        until: Timestamp,
        limit: u32,
        now: Now,
    ) -> Result<LookAhead, StoreError> {
        through!(
            self,
            look_ahead(
                shards = Ref(shards.to_vec()),
                until = Own(until),
                limit = Own(limit),
                now = Own(now)
            )
        )
    }

    async fn fire(&self, node: NodeNo, batch: Vec<Fire>, now: Now) -> Result<Fired, StoreError> {
        let bounds = Arc::clone(&self.bounds);
        self.change("fire", move |inner| {
            Box::pin(async move {
                bounds.gave(node, claimed_times(&batch));
                inner.fire(node, batch, now).await
            })
        })
        .await
    }

    async fn fire_delayed(
        &self,
        node: NodeNo,
        batch: Vec<FireDelayed>,
        now: Now,
    ) -> Result<Fired, StoreError> {
        let bounds = Arc::clone(&self.bounds);
        self.change("fire_delayed", move |inner| {
            Box::pin(async move {
                bounds.gave(node, batch.iter().map(|wake| wake.key.scheduled_at));
                inner.fire_delayed(node, batch, now).await
            })
        })
        .await
    }

    async fn supersede(&self, batch: &[Supersede], now: Now) -> Result<(), StoreError> {
        through!(self, supersede(batch = Ref(batch.to_vec()), now = Own(now)))
    }

    async fn postpone(&self, batch: &[Postpone]) -> Result<(), StoreError> {
        through!(self, postpone(batch = Ref(batch.to_vec())))
    }

    async fn find_closed_windows(
        &self,
        shards: &[Shard],
        limit: u32,
        now: Now,
    ) -> Result<Vec<ClosedAttempt>, StoreError> {
        through!(
            self,
            find_closed_windows(shards = Ref(shards.to_vec()), limit = Own(limit), now = Own(now))
        )
    }

    async fn set_claim_windows(
        &self,
        batch: &[(AttemptKey, ClaimWindow)],
    ) -> Result<(), StoreError> {
        through!(self, set_claim_windows(batch = Ref(batch.to_vec())))
    }
}

#[async_trait]
impl AttemptStore for FaultyStore {
    async fn claim(&self, claim: &Claim, now: Now) -> Result<Claimed, StoreError> {
        let (bounds, claim) = (Arc::clone(&self.bounds), claim.clone());
        self.change("claim", move |inner| {
            Box::pin(async move {
                let claimed = inner.claim(&claim, now).await?;
                let times = claimed.attempts.iter().map(|attempt| attempt.key.scheduled_at);
                bounds.gave(claim.node, times);
                Ok(claimed)
            })
        })
        .await
    }

    async fn finish(
        &self,
        node: NodeNo,
        batch: Vec<Finish>,
        alpha: f64,
    ) -> Result<Vec<FinishResult>, StoreError> {
        through!(self, finish(node = Own(node), batch = Own(batch), alpha = Own(alpha)))
    }

    async fn requeue(
        &self,
        node: NodeNo,
        batch: Vec<Requeue>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        through!(self, requeue(node = Own(node), batch = Own(batch), now = Own(now)))
    }

    async fn find_owned(
        &self,
        node: NodeNo,
        keys: &[AttemptKey],
    ) -> Result<Vec<OwnedAttempt>, StoreError> {
        through!(self, find_owned(node = Own(node), keys = Ref(keys.to_vec())))
    }

    async fn list_owned(&self, node: NodeNo, limit: u32) -> Result<Vec<OwnedAttempt>, StoreError> {
        let owned: Vec<OwnedAttempt> =
            through!(self, list_owned(node = Own(node), limit = Own(limit)))?;
        Ok(self.bounds.found(node, owned))
    }

    async fn cancellations(&self, node: NodeNo) -> Result<Vec<Cancellation>, StoreError> {
        through!(self, cancellations(node = Own(node)))
    }

    async fn cancel_run(
        &self,
        scope: &Scope,
        key: AttemptKey,
        now: Now,
    ) -> Result<RunCancelled, StoreError> {
        through!(self, cancel_run(scope = Ref(*scope), key = Own(key), now = Own(now)))
    }

    async fn waiting_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        ahead: Option<Aging>,
        now: Now,
    ) -> Result<Vec<WaitingAttempt>, StoreError> {
        self.inner.waiting_attempts(scope, job, ahead, now).await
    }

    async fn count_queued(&self, pools: &[String], limit: u32) -> Result<u32, StoreError> {
        through!(self, count_queued(pools = Ref(pools.to_vec()), limit = Own(limit)))
    }

    async fn count_queued_ahead(
        &self,
        pools: &[String],
        place: QueuePosition,
        limit: u32,
        now: Now,
    ) -> Result<u32, StoreError> {
        through!(
            self,
            count_queued_ahead(
                pools = Ref(pools.to_vec()),
                place = Own(place),
                limit = Own(limit),
                now = Own(now)
            )
        )
    }

    async fn get_attempt(
        &self,
        scope: &Scope,
        key: AttemptKey,
    ) -> Result<Option<Attempt>, StoreError> {
        through!(self, get_attempt(scope = Ref(*scope), key = Own(key)))
    }

    async fn list_attempts(
        &self,
        scope: &Scope,
        filter: AttemptFilter,
        page: PageRequest<AttemptKey>,
    ) -> Result<Page<Attempt, AttemptKey>, StoreError> {
        through!(self, list_attempts(scope = Ref(*scope), filter = Own(filter), page = Own(page)))
    }

    async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        through!(self, prune(prune = Own(prune)))
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn batch_sizing(&self) -> BatchSizing {
        BatchSizing { parallel_batches: self.parallel_batches, ..self.inner.batch_sizing() }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        through!(self, now())
    }

    fn signals(&self) -> &Signals {
        self.inner.signals()
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        // One in three wake-ups is lost: nothing may depend on them.
        if self.chance.bits().is_multiple_of(3) {
            return Ok(());
        }
        through!(self, announce(signal = Own(signal)))
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        through!(self, tenant(name = Ref(name.to_owned())))
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        through!(self, setting(key = Ref(key.to_owned()), fresh = Ref(fresh.to_owned())))
    }

    async fn census(&self) -> Result<Census, StoreError> {
        through!(self, census())
    }
}
