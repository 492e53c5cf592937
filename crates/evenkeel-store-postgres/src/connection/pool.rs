//! Connections, and verbs that run on them whatever becomes of their callers.
//!
//! A verb runs in a task of its own that owns its connection. If the caller goes away the task
//! goes on to its end, so that no connection comes back to the pool in the middle of anything.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use evenkeel_store::StoreError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::tls;
use crate::error::{Failure, OpenError, Tried};
use crate::options::{CONNECT_TIMEOUT, PostgresOptions, Purpose};

/// How often a verb that collided with another is tried again.
const COLLISIONS_MAX: u32 = 8;

/// Connections for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: Pool,
    verb_timeout: Duration,
}

impl Connections {
    pub(crate) fn new(options: &PostgresOptions, purpose: Purpose) -> Result<Self, OpenError> {
        let config = options.config(purpose)?;
        let tls = tls::connector(config.get_ssl_mode())?;
        // Only a look whether the socket is open: a round trip per verb would cost more than the
        // rare verb that finds its connection dead.
        let manager = Manager::from_config(
            config,
            tls,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let size = match purpose {
            Purpose::Hot => options.hot_connections,
            Purpose::Api | Purpose::Listen | Purpose::Migrate => options.api_connections,
        };
        let pool = Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.verb_timeout()))
            .create_timeout(Some(CONNECT_TIMEOUT * 2))
            .recycle_timeout(Some(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| OpenError::Options(error.into()))?;
        Ok(Self { pool, verb_timeout: options.verb_timeout() })
    }

    /// Runs a verb to its end, again if it collided with another.
    pub(crate) async fn run<A, T, F, Fut>(&self, args: A, verb: F) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: Fn(Arc<Connection>, Arc<A>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Tried<T>> + Send + 'static,
    {
        let connections = self.clone();
        let task = tokio::spawn(async move {
            let args = Arc::new(args);
            let mut collisions = 0;
            loop {
                match connections.once(Arc::clone(&args), &verb).await {
                    Err(failure) if failure.is_collision() && collisions < COLLISIONS_MAX => {
                        collisions += 1;
                    }
                    tried => return tried.map_err(Failure::into_store_error),
                }
            }
        });
        task.await.map_err(|panic| StoreError::Refused(panic.into()))?
    }

    async fn once<A, T, F, Fut>(&self, args: Arc<A>, verb: &F) -> Tried<T>
    where
        F: Fn(Arc<Connection>, Arc<A>) -> Fut,
        Fut: Future<Output = Tried<T>>,
    {
        let unavailable =
            |error: deadpool_postgres::PoolError| StoreError::Unavailable(error.into());
        let object = self.pool.get().await.map_err(unavailable)?;
        let connection =
            Arc::new(Connection { object: Some(object), in_transaction: AtomicBool::new(false) });
        let tried = tokio::time::timeout(self.verb_timeout, verb(Arc::clone(&connection), args))
            .await
            .unwrap_or_else(|elapsed| Err(StoreError::Unavailable(elapsed.into()).into()));
        let timed_out = matches!(&tried, Err(Failure::Final(error)) if error.is_outage());
        let spoiled = tried.as_ref().is_err_and(Failure::spoils_connection);
        if timed_out || (spoiled && !tried.as_ref().is_err_and(Failure::is_collision)) {
            connection.in_transaction.store(true, Ordering::Relaxed);
        }
        tried
    }
}

/// A connection that a verb has for itself.
#[derive(Debug)]
pub(crate) struct Connection {
    /// `None` only while it is dropped.
    object: Option<Object>,
    in_transaction: AtomicBool,
}

impl Deref for Connection {
    type Target = deadpool_postgres::ClientWrapper;

    fn deref(&self) -> &Self::Target {
        match &self.object {
            Some(object) => object,
            None => unreachable!("a connection is used after it was dropped"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && self.in_transaction.load(Ordering::Relaxed)
        {
            // In an unknown state: closed, not reused.
            drop(Object::take(object));
        }
    }
}

/// What a statement is given.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Connection {
    pub(crate) async fn rows(&self, sql: &str, params: Params<'_>) -> Tried<Vec<Row>> {
        let statement: Statement = self.prepare_cached(sql).await?;
        Ok(self.query(&statement, params).await?)
    }

    pub(crate) async fn row(&self, sql: &str, params: Params<'_>) -> Tried<Row> {
        let statement = self.prepare_cached(sql).await?;
        Ok(self.query_one(&statement, params).await?)
    }

    pub(crate) async fn maybe_row(&self, sql: &str, params: Params<'_>) -> Tried<Option<Row>> {
        let statement = self.prepare_cached(sql).await?;
        Ok(self.query_opt(&statement, params).await?)
    }

    pub(crate) async fn change(&self, sql: &str, params: Params<'_>) -> Tried<u64> {
        let statement = self.prepare_cached(sql).await?;
        Ok(self.execute(&statement, params).await?)
    }

    /// Runs `body` in a transaction, which is undone if it fails.
    pub(crate) async fn transaction<T>(&self, body: impl Future<Output = Tried<T>>) -> Tried<T> {
        self.in_transaction.store(true, Ordering::Relaxed);
        self.batch_execute("BEGIN").await?;
        let tried = body.await;
        self.batch_execute(if tried.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        self.in_transaction.store(false, Ordering::Relaxed);
        tried
    }
}
