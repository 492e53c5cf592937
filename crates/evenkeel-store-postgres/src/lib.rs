//! Evenkeel's store on PostgreSQL, which several nodes can share.
//!
//! Batches are sent as arrays. Firing and finishing a batch usually take one statement each, which
//! is one round trip and one transaction. A claim is one transaction of several statements. Firing,
//! claiming and finishing (the hot path) and the API use separate connections, so that API traffic
//! cannot delay a run.
//!
//! | module | what |
//! |---|---|
//! | `schedules` | loading due jobs, firing them, delayed attempts, claim windows |
//! | `attempts` | claiming, finishing, requeueing, cancelling, listing and pruning attempts |
//! | `jobs` | registering, reading, listing, triggering and changing jobs |
//! | `limits`, `queue` | limit queues and permits; queue depths and aging |
//! | `conditions`, `run_stats`, `activity`, `dead_letters`, `events`, `notes` | what users see of runs |
//! | `balance` | load profiles, rebalances, balance scores |
//! | `pages`, `targets`, `secrets`, `access`, `requests`, `dedup`, `nodes` | one table or two each |
//! | `connection` | pool, encryption, notifications between nodes |
//! | `sql`, `rows`, `migrate`, `options`, `error` | statements, columns, tables, settings, faults |

#[macro_use]
mod sql;
#[macro_use]
mod connection;

mod access;
mod activity;
mod attempts;
mod balance;
mod conditions;
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

pub use connection::connect_external;
pub use error::OpenError;
pub use options::PostgresOptions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    BatchSizing, Census, EVENTS_KEPT, Events, Signal, Signals, Store, StoreError,
};
use tokio::task::AbortHandle;
use tokio_postgres::Row;

use crate::connection::{Announcer, Connections, connector, listen};
use crate::options::Purpose;
use crate::rows::{count, get, time};

/// A store in a PostgreSQL database. Dropping the store closes its connections.
#[derive(Debug)]
pub struct PostgresStore {
    hot: Connections,
    api: Connections,
    signals: Signals,
    events: Events,
    /// Number of events published since old events were last deleted.
    untrimmed: AtomicUsize,
    announcer: Announcer,
    listener: AbortHandle,
    /// True if another node held the lock of a tenant or lane limit during the last claim of this
    /// store.
    contended: Arc<AtomicBool>,
}

/// The server settings that decide whether a commit survives a crash of the server's machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durability {
    pub fsync: bool,
    pub synchronous_commit: String,
    pub full_page_writes: bool,
}

impl Durability {
    /// True if every acknowledged commit survives a crash.
    pub fn is_full(&self) -> bool {
        self.fsync && self.full_page_writes && self.synchronous_commit != "off"
    }
}

impl PostgresStore {
    /// Connects to a database, and creates or upgrades its tables.
    ///
    /// # Errors
    /// Fails if the options are invalid, the database is not reachable, or its tables are of a
    /// newer or an unreleased version.
    pub async fn connect(options: PostgresOptions) -> Result<Self, OpenError> {
        options.validate()?;
        migrate::migrate(&options).await?;
        let hot = Connections::new(&options, Purpose::Hot)?;
        let api = Connections::new(&options, Purpose::Api)?;
        // With a unique id, this store recognises the notifications it has sent.
        let origin = hot.row(sql!("connect_origin"), params![], |row| get(row, 0)).await;
        let origin: String = origin.map_err(|error| OpenError::Unavailable(error.into()))?;
        let signals = Signals::default();
        let config = options.config(Purpose::Listen)?;
        let tls = connector(config.get_ssl_mode())?;
        let listen = listen(config, tls, options.channel(), origin.clone(), signals.clone());
        let listener = tokio::spawn(listen).abort_handle();
        let announcer = Announcer::new(options.channel(), origin, hot.clone());
        Ok(Self {
            hot,
            api,
            signals,
            events: Events::default(),
            untrimmed: AtomicUsize::new(EVENTS_KEPT),
            announcer,
            listener,
            contended: Arc::default(),
        })
    }

    /// Reads the server's durability settings.
    ///
    /// # Errors
    /// Fails if the database is not reachable.
    pub async fn durability(&self) -> Result<Durability, StoreError> {
        let read = |row: &Row| {
            Ok(Durability {
                fsync: get(row, "fsync")?,
                synchronous_commit: get(row, "synchronous_commit")?,
                full_page_writes: get(row, "full_page_writes")?,
            })
        };
        self.api.row(sql!("connect_durability"), params![], read).await
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    /// Beyond 1,000 rows per batch, throughput hardly grows. Two connections keep two cores busy.
    fn batch_sizing(&self) -> BatchSizing {
        BatchSizing { batch: 1000, parallel_batches: 2 }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.hot.row(sql!("now"), params![None::<i64>], |row| time(row, 0)).await
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        self.signals.send(signal);
        self.announcer.announce(signal).await
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        run!(self.api, name.to_owned(), |connection, name| {
            let find = sql!("tenant_find");
            if let Some(row) = connection.maybe_row(find, &[name]).await? {
                return Ok(TenantNo(get(&row, 0)?));
            }
            connection.change(sql!("tenant_create"), &[name]).await?;
            Ok(TenantNo(get(&connection.row(find, &[name]).await?, 0)?))
        })
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        run!(self.api, (key.to_owned(), fresh.to_owned()), |connection, (key, fresh)| {
            let find = sql!("setting_find");
            if let Some(row) = connection.maybe_row(find, &[key]).await? {
                return get(&row, 0);
            }
            connection.change(sql!("setting_create"), &[key, fresh]).await?;
            get(&connection.row(find, &[key]).await?, 0)
        })
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn census(&self) -> Result<Census, StoreError> {
        let read = |row: &Row| {
            Ok(Census {
                jobs: count(row, "jobs")?,
                runs: count(row, "attempts")?,
                running: count(row, "running")?,
                ready: count(row, "ready")?,
                delayed: count(row, "delayed")?,
                skipped_times: count(row, "skipped_times")?,
                live: count(row, "live")?,
                at_risk: count(row, "at_risk")?,
            })
        };
        self.api.row(sql!("census"), params![], read).await
    }
}
