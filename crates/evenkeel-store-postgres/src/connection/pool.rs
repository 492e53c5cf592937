//! The connection pool. Each store method runs in a task that owns its connection. If the caller is
//! cancelled, the task continues, so that no connection returns to the pool in the middle of a
//! transaction.

use std::any::Any;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use evenkeel_store::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::tls;
use crate::error::{Failure, OpenError, Tried};
use crate::options::{CONNECT_TIMEOUT, PostgresOptions, Purpose};

/// Maximum number of times a store method is repeated after a conflict with another transaction.
const COLLISIONS_MAX: u32 = 8;

/// A boxed future, so that all store methods share the code below that runs statements and tasks.
/// Compiling the shared code once per store method took three quarters of the build time of this
/// crate.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Tried<T>> + Send + 'a>>;

/// A store method with a type-erased result.
type Verb = Box<dyn Fn(&Connection) -> Answer<'_, Box<dyn Any + Send>> + Send + Sync>;

/// Parameters of a statement, by reference.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Parameters that a store method of one statement owns; [`params!`] creates them.
pub(crate) type OwnedParams = Vec<Box<dyn ToSql + Send + Sync>>;

macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Send + Sync>),*]
    };
}

/// Runs a store method, as in `run!(self.api, (name, jobs), |connection, (name, jobs)| …)`. The
/// body gets its arguments by reference, because it is repeated after a conflict with another
/// transaction. The body can also use all `Copy` variables around it, such as numbers.
macro_rules! run {
    ($connections:expr, |$connection:ident| $body:expr) => {
        run!($connections, (), |$connection, ()| $body)
    };
    ($connections:expr, $args:expr, |$connection:ident, $pattern:pat_param| $body:expr) => {
        $connections.run($args, move |$connection, $pattern| Box::pin(async move { $body })).await
    };
}

/// Runs a store method like [`run!`], in a transaction.
macro_rules! transaction {
    ($connections:expr, |$connection:ident| $body:expr) => {
        transaction!($connections, (), |$connection, ()| $body)
    };
    ($connections:expr, $args:expr, |$connection:ident, $pattern:pat_param| $body:expr) => {
        run!($connections, $args, |$connection, $pattern| {
            $connection.transaction(async move { $body }).await
        })
    };
}

/// The pool of connections for one purpose, such as the API.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: Pool,
    verb_timeout: Duration,
}

impl Connections {
    pub(crate) fn new(options: &PostgresOptions, purpose: Purpose) -> Result<Self, OpenError> {
        let config = options.config(purpose)?;
        let tls = tls::connector(config.get_ssl_mode())?;
        // The pool checks only whether the socket is open. A round trip before each store method
        // would cost more than a method that fails because its connection is dead.
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

    /// Runs a store method to its end, and repeats it after a conflict with another transaction.
    /// Use it through [`run!`].
    pub(crate) async fn run<A, T, F>(&self, args: A, verb: F) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        F: for<'a> Fn(&'a Connection, &'a A) -> Answer<'a, T> + Send + Sync + 'static,
    {
        let shared = Arc::new((args, verb));
        let verb: Verb = Box::new(move |connection| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (args, verb) = &*shared;
                Ok(Box::new(verb(connection, args).await?) as Box<dyn Any + Send>)
            })
        });
        let answer = self.run_erased(verb).await?;
        Ok(*answer.downcast::<T>().unwrap_or_else(|_| unreachable!("the closure returned T")))
    }

    /// Runs a store method that consists of one statement, and reads all rows of its result.
    pub(crate) async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: OwnedParams,
        read: fn(&Row) -> Tried<T>,
    ) -> Result<Vec<T>, StoreError> {
        run!(self, params, |connection, params| {
            connection.rows(sql, &by_reference(params)).await?.iter().map(read).collect()
        })
    }

    /// Runs a store method that consists of one statement, and reads the only row of its result.
    pub(crate) async fn row<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: OwnedParams,
        read: fn(&Row) -> Tried<T>,
    ) -> Result<T, StoreError> {
        run!(self, params, |connection, params| {
            read(&connection.row(sql, &by_reference(params)).await?)
        })
    }

    /// Like [`row`](Self::row), for a result of at most one row.
    pub(crate) async fn maybe_row<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: OwnedParams,
        read: fn(&Row) -> Tried<T>,
    ) -> Result<Option<T>, StoreError> {
        run!(self, params, |connection, params| {
            connection.maybe_row(sql, &by_reference(params)).await?.as_ref().map(read).transpose()
        })
    }

    /// Runs a store method that consists of one statement, and returns how many rows it changed.
    pub(crate) async fn change(
        &self,
        sql: &'static str,
        params: OwnedParams,
    ) -> Result<u64, StoreError> {
        run!(self, params, |connection, params| {
            connection.change(sql, &by_reference(params)).await
        })
    }

    async fn run_erased(&self, verb: Verb) -> Result<Box<dyn Any + Send>, StoreError> {
        let connections = self.clone();
        let task = tokio::spawn(async move {
            let mut collisions = 0;
            loop {
                match connections.once(&verb).await {
                    Err(failure) if failure.is_collision() && collisions < COLLISIONS_MAX => {
                        collisions += 1;
                    }
                    tried => return tried.map_err(Failure::into_store_error),
                }
            }
        });
        task.await.map_err(|panic| StoreError::Refused(panic.into()))?
    }

    async fn once(&self, verb: &Verb) -> Tried<Box<dyn Any + Send>> {
        let unavailable =
            |error: deadpool_postgres::PoolError| StoreError::Unavailable(error.into());
        let object = self.pool.get().await.map_err(unavailable)?;
        let connection =
            Connection { object: Some(object), in_transaction: AtomicBool::new(false) };
        let tried = tokio::time::timeout(self.verb_timeout, verb(&connection))
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

/// A connection that one call of a store method owns.
#[derive(Debug)]
pub(crate) struct Connection {
    /// `None` only during drop.
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
            // The state of the connection is unknown, so the connection is closed and not reused.
            drop(Object::take(object));
        }
    }
}

fn by_reference(params: &OwnedParams) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect()
}

impl Connection {
    pub(crate) fn rows<'a>(&'a self, sql: &'a str, params: Params<'a>) -> Answer<'a, Vec<Row>> {
        Box::pin(async move {
            let statement = self.prepare_cached(sql).await?;
            Ok(self.query(&statement, params).await?)
        })
    }

    pub(crate) fn row<'a>(&'a self, sql: &'a str, params: Params<'a>) -> Answer<'a, Row> {
        Box::pin(async move {
            let statement = self.prepare_cached(sql).await?;
            Ok(self.query_one(&statement, params).await?)
        })
    }

    pub(crate) fn maybe_row<'a>(
        &'a self,
        sql: &'a str,
        params: Params<'a>,
    ) -> Answer<'a, Option<Row>> {
        Box::pin(async move {
            let statement = self.prepare_cached(sql).await?;
            Ok(self.query_opt(&statement, params).await?)
        })
    }

    pub(crate) fn change<'a>(&'a self, sql: &'a str, params: Params<'a>) -> Answer<'a, u64> {
        Box::pin(async move {
            let statement = self.prepare_cached(sql).await?;
            Ok(self.execute(&statement, params).await?)
        })
    }

    /// Runs the future `body` in a transaction, which is rolled back if the future fails.
    pub(crate) async fn transaction<T>(&self, body: impl Future<Output = Tried<T>>) -> Tried<T> {
        self.in_transaction.store(true, Ordering::Relaxed);
        self.batch_execute("BEGIN").await?;
        let tried = body.await;
        self.batch_execute(if tried.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        self.in_transaction.store(false, Ordering::Relaxed);
        tried
    }
}
