//! Evenkeel's store on PostgreSQL, for several nodes.
//!
//! Rows travel as arrays, and a verb of the hot path is one statement: one round trip, one
//! transaction. Firing and what users ask have connections of their own, so that no crowd of
//! users can keep a job from starting.

#[macro_use]
mod sql;

mod access;
mod balance;
mod columns;
mod dead;
mod dedup;
mod elsewhere;
mod error;
mod events;
mod jobs;
mod limits;
mod listen;
mod migrate;
mod nodes;
mod notes;
mod options;
mod pages;
mod pool;
mod queue;
mod requests;
mod rounds;
mod runs;
mod schedules;
mod secrets;
#[cfg(test)]
mod statements_test;
mod tally;
mod targets;
mod tls;
mod watch;
mod withdraw;

pub use elsewhere::connect_elsewhere;
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

use crate::columns::{count, get, time};
use crate::listen::Announcer;
use crate::options::Purpose;
use crate::pool::Connections;

/// A PostgreSQL database. Dropping it closes its connections.
#[derive(Debug)]
pub struct PostgresStore {
    hot: Connections,
    api: Connections,
    signals: Signals,
    events: Events,
    /// Events that were published since old ones were last taken away.
    untrimmed: AtomicUsize,
    announcer: Announcer,
    listener: AbortHandle,
    /// Somebody else had the lock of a tenant's or lane's limit when this store last claimed.
    contended: Arc<AtomicBool>,
}

/// What of a commit survives a crash of the database's machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durability {
    /// Does it wait for the disk?
    pub fsync: bool,
    /// What a commit waits for.
    pub synchronous_commit: String,
    /// Are pages that were half written repaired?
    pub full_page_writes: bool,
}

impl Durability {
    /// Does all that was acknowledged survive?
    pub fn is_full(&self) -> bool {
        self.fsync && self.full_page_writes && self.synchronous_commit != "off"
    }
}

impl PostgresStore {
    /// Connects to a database and brings its tables up to date.
    ///
    /// # Errors
    /// When the options make no sense, the database does not answer, or its tables are newer.
    pub async fn connect(options: PostgresOptions) -> Result<Self, OpenError> {
        options.validate()?;
        migrate::migrate(&options).await?;
        let hot = Connections::new(&options, Purpose::Hot)?;
        let api = Connections::new(&options, Purpose::Api)?;
        let origin =
            new_origin(&hot).await.map_err(|error| OpenError::Unavailable(error.into()))?;
        let signals = Signals::default();
        let config = options.config(Purpose::Listen)?;
        let tls = tls::connector(config.get_ssl_mode())?;
        let listen =
            listen::listen(config, tls, options.channel(), origin.clone(), signals.clone());
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

    /// What of a commit survives a crash of the database's machine.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn durability(&self) -> Result<Durability, StoreError> {
        self.api
            .run((), |connection, _| async move {
                let row = connection.row(sql!("connect_durability"), &[]).await?;
                Ok(Durability {
                    fsync: get(&row, 0)?,
                    synchronous_commit: get(&row, 1)?,
                    full_page_writes: get(&row, 2)?,
                })
            })
            .await
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A word that tells this store's announcements from those of others.
async fn new_origin(connections: &Connections) -> Result<String, StoreError> {
    connections
        .run((), |connection, _| async move {
            let row = connection.row(sql!("connect_origin"), &[]).await?;
            Ok(get(&row, 0)?)
        })
        .await
}

#[async_trait]
impl Store for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    /// From 500 rows on only the wait grows, and two connections keep two cores busy.
    fn appetite(&self) -> BatchSizing {
        BatchSizing { batch: 1000, side_by_side: 2 }
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.hot
            .run(None::<i64>, |connection, database| async move {
                let sql = sql!("now");
                Ok(time(&connection.row(sql, &[&*database]).await?, 0)?)
            })
            .await
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        self.signals.send(signal);
        self.announcer.announce(signal).await
    }

    async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        self.api
            .run(name.to_owned(), |connection, name| async move {
                let find = sql!("tenant_find");
                if let Some(row) = connection.maybe_row(find, &[&*name]).await? {
                    return Ok(TenantNo(get(&row, 0)?));
                }
                connection.change(sql!("tenant_make"), &[&*name]).await?;
                Ok(TenantNo(get(&connection.row(find, &[&*name]).await?, 0)?))
            })
            .await
    }

    async fn setting(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        self.api
            .run((key.to_owned(), fresh.to_owned()), |connection, args| async move {
                let (key, fresh) = &*args;
                let find = sql!("setting_find");
                if let Some(row) = connection.maybe_row(find, &[key]).await? {
                    return Ok(get(&row, 0)?);
                }
                let make = sql!("setting_make");
                connection.change(make, &[key, fresh]).await?;
                Ok(get(&connection.row(find, &[key]).await?, 0)?)
            })
            .await
    }

    async fn census(&self) -> Result<Census, StoreError> {
        self.api
            .run((), |connection, _| async move {
                let row = connection.row(sql!("census"), &[]).await?;
                Ok(Census {
                    jobs: count(&row, 0)?,
                    runs: count(&row, 1)?,
                    running: count(&row, 2)?,
                    ready: count(&row, 3)?,
                    wakes: count(&row, 4)?,
                    skipped_times: count(&row, 5)?,
                    live: count(&row, 6)?,
                    watched: count(&row, 7)?,
                })
            })
            .await
    }
}
