//! An in-memory store that implements the store interface in the simplest way.
//!
//! Tests compare the SQL stores with this model, and the engine's simulation runs on the model. The
//! model is deterministic: nothing depends on the order of a hash map. The model never waits and
//! never spawns tasks, and no frequent operation reads more rows than it returns. All clones of a
//! model store share one database, like the nodes of a cluster.

mod access;
mod at_risk;
mod balance;
mod cancel;
mod claim_windows;
mod commands;
mod data;
mod dead_letters;
mod dedup;
mod depths;
mod events;
mod finish;
mod fires;
mod job_lists;
mod jobs;
mod limits;
mod lists;
mod load_profiles;
mod nodes;
mod override_outcome;
mod pages;
mod progress;
mod prune;
mod queue;
mod requests;
mod run_stats;
mod secrets;
mod targets;
mod verbs;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{BatchSizing, Census, EventRing, Now, Signal, Signals, Store, StoreError};

use data::Data;

/// The clock for [`Now::Database`].
pub type ModelClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[derive(Clone)]
pub struct ModelStore {
    data: Arc<Mutex<Data>>,
    clock: ModelClock,
    signals: Signals,
    events: evenkeel_store::Events,
    ring: Arc<Mutex<EventRing>>,
    parallel_batches: usize,
}

impl ModelStore {
    /// Creates an empty store with this clock.
    pub fn new(clock: ModelClock) -> Self {
        let ring = Arc::new(Mutex::new(EventRing::new(Timestamp::from_micros(1_000_000))));
        Self {
            data: Arc::default(),
            clock,
            ring,
            parallel_batches: 1,
            signals: Signals::default(),
            events: evenkeel_store::Events::default(),
        }
    }

    /// Returns the same database with
    /// [`BatchSizing::parallel_batches`](evenkeel_store::BatchSizing::parallel_batches) set to
    /// `count`.
    #[must_use]
    pub fn with_parallel_batches(self, count: usize) -> Self {
        Self { parallel_batches: count, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Data> {
        // A panic in another thread poisons the lock, but does not damage the stored data.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(&self, now: Now) -> Timestamp {
        now.literal().unwrap_or_else(|| (self.clock)())
    }
}

impl fmt::Debug for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStore").field("census", &self.lock().census()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for ModelStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn batch_sizing(&self) -> BatchSizing {
        BatchSizing { batch: 1000, parallel_batches: self.parallel_batches }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok((self.clock)())
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        self.signals.send(signal);
        Ok(())
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        Ok(self.lock().tenant(name))
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        let mut data = self.lock();
        Ok(data.settings.entry(key.into()).or_insert_with(|| fresh.into()).clone())
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn census(&self) -> Result<Census, StoreError> {
        Ok(self.lock().census())
    }
}
