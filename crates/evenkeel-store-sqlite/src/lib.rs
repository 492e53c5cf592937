//! Evenkeel's store on SQLite: one file, one process, one writer.
//!
//! One thread makes all writes and commits them in groups. Readers use separate connections, and a
//! separate thread keeps the write-ahead log short. A store method returns after its commit, so
//! every later read sees its changes, and the changes survive a crash.
//!
//! Modules: `connection` (writer, readers, log), `migrate`, `sql` (the statements of `queries/`),
//! `rows` (conversion of rows to types), and one module per topic: `jobs`, `schedules`, `attempts`,
//! `limits`, `queue`, `conditions`, `balance`, `nodes`, `notes` (progress and messages),
//! `dead_letters`, `dedup`, `targets`, `run_stats`, `activity`, `events`, `pages`, `access`,
//! `secrets`, `requests`. The PostgreSQL store has the same modules.

#[macro_use]
mod sql;

mod access;
mod activity;
mod attempts;
mod balance;
mod conditions;
mod connection;
mod dead_letters;
mod dedup;
mod error;
mod events;
mod jobs;
mod limits;
mod migrate;
mod nodes;
mod notes;
mod options;
mod pages;
mod queue;
mod requests;
mod rows;
mod run_stats;
mod schedules;
mod secrets;
mod targets;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{BatchSizing, Census, EventRing, Events, Signal, Signals, Store, StoreError};
use rusqlite::Connection;

use crate::connection::{Readers, RunSql, Urgency, Writer, system_time};
use crate::error::Answer;
use crate::rows::count;

pub use error::OpenError;
pub use options::SqliteOptions;

/// The time limit for reads of users and crawls.
const USER_READ_MAX: Duration = Duration::from_secs(10);
/// The time limit for reads of the engine.
const ENGINE_READ_MAX: Duration = Duration::from_secs(60);
/// One of the two connections can run a long read while the other serves short reads.
const ENGINE_READERS: usize = 2;

/// A store in one SQLite file. Dropping the store finishes the accepted requests and closes the
/// file.
pub struct SqliteStore {
    writer: Arc<Writer>,
    /// Connections for users and crawls, whose reads may be long.
    readers: Readers,
    /// Connections for the engine, which must not wait for reads of users.
    engine_readers: Readers,
    signals: Signals,
    events: Events,
    /// The newest events; all listeners are in this process.
    ring: Mutex<EventRing>,
    durability: String,
}

impl SqliteStore {
    /// Opens the store and creates or migrates its tables. Call this function inside a tokio
    /// runtime.
    pub async fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        tokio::task::spawn_blocking(move || Self::open_blocking(&options))
            .await
            .map_err(|cause| OpenError::Thread(std::io::Error::other(cause)))?
    }

    fn open_blocking(options: &SqliteOptions) -> Result<Self, OpenError> {
        let writer = Writer::start(options)?;
        let readers = Readers::open(options, options.readers, USER_READ_MAX)?;
        let engine_readers = Readers::open(options, ENGINE_READERS, ENGINE_READ_MAX)?;
        let synchronous = if options.synchronous_full { "FULL" } else { "NORMAL" };
        let durability = format!("journal_mode=WAL synchronous={synchronous}");
        Ok(Self {
            writer: Arc::new(writer),
            readers,
            engine_readers,
            signals: Signals::default(),
            events: Events::default(),
            ring: Mutex::new(EventRing::new(system_time())),
            durability,
        })
    }

    /// Returns the settings that decide what survives a crash or a power failure.
    pub fn durability(&self) -> String {
        self.durability.clone()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }

    /// Batches are large, because a database page that many rows of a batch change is then written
    /// only once. Two batches of each kind run in parallel: those that wait while another commit
    /// runs share the next commit.
    fn batch_sizing(&self) -> BatchSizing {
        BatchSizing { batch: 4000, parallel_batches: 2 }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(system_time())
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        self.signals.send(signal);
        Ok(())
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        let wanted = name.to_owned();
        if let Some(known) = self.engine_readers.read(move |db| find_tenant(db, &wanted)).await? {
            return Ok(known);
        }
        let name = name.to_owned();
        self.writer
            .write(Urgency::Command, 1, move |db| {
                db.run(sql!("tenant_create"), &[&name])?;
                let missing = || StoreError::corrupt("tenant", "name", "the new row is missing");
                Ok(find_tenant(db, &name)?.ok_or_else(missing)?)
            })
            .await
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        let wanted = key.to_owned();
        if let Some(known) = self.engine_readers.read(move |db| find_setting(db, &wanted)).await? {
            return Ok(known);
        }
        let (key, fresh) = (key.to_owned(), fresh.to_owned());
        self.writer
            .write(Urgency::Command, 1, move |db| {
                db.run(sql!("setting_create"), &[&key, &fresh])?;
                Ok(find_setting(db, &key)?.unwrap_or_else(|| fresh.clone()))
            })
            .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let writer = Arc::clone(&self.writer);
        tokio::task::spawn_blocking(move || writer.close()).await.map_err(error::unavailable)
    }

    async fn census(&self) -> Result<Census, StoreError> {
        self.readers.read(take_census).await
    }
}

fn find_tenant(db: &Connection, name: &str) -> Answer<Option<TenantNo>> {
    db.maybe_row(sql!("tenant_find"), &[&name], |row| Ok(TenantNo(row.get(0)?)))
}

fn find_setting(db: &Connection, key: &str) -> Answer<Option<String>> {
    db.maybe_value(sql!("setting_find"), &[&key])
}

fn take_census(db: &Connection) -> Answer<Census> {
    db.row(sql!("census"), &[], |row| {
        Ok(Census {
            jobs: count(row, "jobs")?,
            runs: count(row, "attempts")?,
            running: count(row, "running")?,
            ready: count(row, "ready")?,
            delayed: count(row, "delayed")?,
            skipped_times: count(row, "skipped_times")?,
            live: count(row, "live")?,
            at_risk: count(row, "conditions")?,
        })
    })
}
