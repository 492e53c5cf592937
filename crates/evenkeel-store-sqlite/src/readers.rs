//! Connections that read, beside the writer and never in its way.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{Answer, unavailable};
use crate::{OpenError, SqliteOptions};

pub(crate) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    room: Semaphore,
}

/// A connection that returns to the idle ones, whatever happens.
struct Borrowed {
    connection: Option<Connection>,
    home: Arc<Mutex<Vec<Connection>>>,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.home.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl Readers {
    pub(crate) fn open(options: &SqliteOptions) -> Result<Self, OpenError> {
        let count = options.readers.max(1);
        let idle: Result<Vec<Connection>, OpenError> =
            (0..count).map(|_| crate::open::reader(options)).collect();
        Ok(Self { idle: Arc::new(Mutex::new(idle?)), room: Semaphore::new(count) })
    }

    /// Runs `look` on one state of the database, off the async threads.
    pub(crate) async fn read<T, F>(&self, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Answer<T> + Send + 'static,
    {
        let _place = self.room.acquire().await.map_err(unavailable)?;
        let home = Arc::clone(&self.idle);
        let work = move || {
            let connection = home.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let borrowed = Borrowed { connection, home };
            let Some(connection) = &borrowed.connection else {
                return Err(unavailable("no connection is idle"));
            };
            let snapshot =
                connection.unchecked_transaction().map_err(crate::error::Failure::from)?;
            let seen = look(&snapshot).map_err(StoreError::from);
            drop(snapshot);
            seen
        };
        tokio::task::spawn_blocking(work).await.map_err(unavailable)?
    }
}
