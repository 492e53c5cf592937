//! A store with the faults of real databases: it is unreachable, slow or full, or loses answers.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_engine::RandomChance;
use evenkeel_store::{OwnedCall, Relay, Relayed, Store, StoreError, Unwritable, Verb};
use evenkeel_store_testkit::model::ModelStore;
use tokio::sync::Notify;

/// The simulated faults between one node and the store.
#[derive(Default)]
pub struct Link {
    /// Every store call fails after 500 ms.
    pub down: AtomicBool,
    /// The disk of the database is full, so reads succeed and writes are refused.
    pub full: AtomicBool,
    /// Number of writes refused because of the full disk.
    pub refused: AtomicU64,
    /// The node's process is suspended, so its store calls wait until [`thaw`](Self::thaw).
    pub frozen: AtomicBool,
    thawed: Notify,
    /// Number of store calls per 10,000 that fail without an effect.
    pub fail: AtomicU32,
    /// Number of store calls per 10,000 that are committed, but whose answer is lost.
    pub lose_answer: AtomicU32,
    /// Number of store calls per 10,000 that lose their answer and are committed up to 4 s later.
    pub late_commit: AtomicU32,
    /// Number of store calls that failed or lost their answer at random so far.
    pub faults: AtomicU64,
}

impl Link {
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

/// Store traits whose calls have no simulated faults, because the simulation does not use them or
/// their faults do not matter.
const DIRECT_STORES: [&str; 12] = [
    "AccessStore", "BalanceStore", "DeadStore", "DedupStore", "EventStore", "LimitStore",
    "OverrideStore", "QueueStore", "RequestStore", "RunStatsStore", "SecretStore", "TargetStore",
];

/// Further store calls without simulated faults, for the same reason as `DIRECT_STORES`.
const DIRECT_VERBS: [&str; 19] = [
    "all_job_counts", "attempts_of_runs", "condition_counts", "get_jobs", "get_page",
    "ids_of_numbers", "job_counts", "jobs_named", "known_pages", "list_at_risk", "list_jobs",
    "list_pages", "prune_pages", "purge", "recent_runs", "save_pages", "see_pages", "slot_loads",
    "waiting_attempts",
];

/// The connection of one node to the in-memory model of the store, with simulated faults.
pub struct FaultyStore {
    inner: ModelStore,
    link: Arc<Link>,
    chance: RandomChance,
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("a fault of the simulation".into())
}

impl FaultyStore {
    pub fn wrap(inner: ModelStore, link: Arc<Link>, chance: RandomChance) -> Arc<dyn Store> {
        Arc::new(Relayed(Self { inner, link, chance }))
    }

    fn is_down(&self) -> bool {
        self.link.down.load(Ordering::Relaxed)
    }

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

    async fn send<T: Send + 'static>(
        &self,
        call: OwnedCall<ModelStore, T>,
    ) -> Result<T, StoreError> {
        self.travel().await;
        self.link.while_frozen().await;
        if self.is_down() {
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
                let _ = call(inner).await;
            });
            return Err(unavailable());
        }
        let answer = call(self.inner.clone()).await;
        self.travel().await;
        self.link.while_frozen().await;
        if self.is_down() || self.happens(&self.link.lose_answer) {
            return Err(unavailable());
        }
        answer
    }
}

impl Relay for FaultyStore {
    type Inner = ModelStore;

    fn inner(&self) -> &ModelStore {
        &self.inner
    }

    async fn relay<T: Any + Send>(
        &self,
        verb: Verb,
        call: OwnedCall<ModelStore, T>,
    ) -> Result<T, StoreError> {
        // A cluster loads its 256 shards with 256 calls of `load_due`. To keep the simulation fast,
        // a call of `load_due` takes no simulated time.
        let is_direct = verb.name == "load_due"
            || DIRECT_STORES.contains(&verb.store)
            || DIRECT_VERBS.contains(&verb.name);
        if verb.name == "load_due" && self.is_down() {
            return Err(unavailable());
        }
        // One in three wake-up signals is lost, because correctness must not depend on signals. To
        // lose a signal, the simulation sends it to a store without listeners.
        if verb.name == "announce" && self.chance.bits().is_multiple_of(3) {
            return call(ModelStore::new(Arc::new(|| evenkeel_core::Timestamp::MIN))).await;
        }
        if is_direct {
            return call(self.inner.clone()).await;
        }
        if verb.writes && self.link.full.load(Ordering::Relaxed) {
            self.travel().await;
            self.link.refused.fetch_add(1, Ordering::Relaxed);
            let why = "a full disk of the simulation".into();
            return Err(StoreError::NotWritable(Unwritable::DiskFull, why));
        }
        self.send(call).await
    }
}
