//! Connections that read in parallel with the writer and do not block it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use evenkeel_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Answer, Failure, unavailable};
use crate::{OpenError, SqliteOptions};

/// A statement checks its time limit each time SQLite has run this many steps, which take some tens
/// of microseconds.
const STEPS_PER_CHECK: i32 = 1000;

pub(crate) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    time_max: Duration,
}

/// A connection that returns to the pool when it is dropped, even if the caller has stopped
/// waiting. The semaphore permit is released after the connection has returned, so that the next
/// reader finds the connection.
struct Borrowed {
    connection: Option<Connection>,
    home: Arc<Mutex<Vec<Connection>>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.home.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl Readers {
    /// Opens `count` connections. Waiting for a connection and using it are each limited to
    /// `time_max`.
    pub(crate) fn open(
        options: &SqliteOptions,
        count: usize,
        time_max: Duration,
    ) -> Result<Self, OpenError> {
        let count = count.max(1);
        let idle: Result<Vec<Connection>, OpenError> =
            (0..count).map(|_| crate::connection::open::reader(options)).collect();
        let permits = Arc::new(Semaphore::new(count));
        Ok(Self { idle: Arc::new(Mutex::new(idle?)), permits, time_max })
    }

    /// Runs `read` on one snapshot of the database, on a blocking thread.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Answer<T> + Send + 'static,
    {
        let time_max = self.time_max;
        let permit = tokio::time::timeout(time_max, Arc::clone(&self.permits).acquire_owned())
            .await
            .map_err(|_| unavailable("all read connections are busy"))?
            .map_err(unavailable)?;
        let home = Arc::clone(&self.idle);
        let work = move || {
            let connection = home.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut borrowed = Borrowed { connection, home, _permit: permit };
            let Some(connection) = &mut borrowed.connection else {
                return Err(unavailable("no connection is idle"));
            };
            interrupt_after(connection, time_max).map_err(StoreError::from)?;
            let snapshot = connection.unchecked_transaction().map_err(Failure::from)?;
            let result = read(&snapshot).map_err(StoreError::from);
            drop(snapshot);
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(unavailable)?
    }
}

/// Interrupts the statement that the connection runs once `time` has passed.
fn interrupt_after(connection: &mut Connection, time: Duration) -> Answer<()> {
    let begun = instant_now();
    let is_over = move || instant_now().duration_since(begun) > time;
    Ok(connection.progress_handler(STEPS_PER_CHECK, Some(is_over))?)
}

#[expect(clippy::disallowed_methods, reason = "SQLite's work takes real time")]
fn instant_now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::*;

    fn single_reader(time_max: Duration) -> (TempDir, Arc<Readers>) {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(directory.path().join("store"));
        let readers = Readers::open(&options, 1, time_max).unwrap();
        (directory, Arc::new(readers))
    }

    fn number(db: &Connection) -> Answer<i64> {
        Ok(db.query_row("SELECT 7", [], |row| row.get(0))?)
    }

    #[tokio::test]
    async fn an_abandoned_read_keeps_its_connection_until_it_ends() {
        let (_directory, readers) = single_reader(Duration::from_secs(60));
        let (begins, begun) = oneshot::channel();
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let held = Arc::clone(&readers);
        let first = tokio::spawn(async move {
            let read = move |_: &Connection| {
                let _ = begins.send(());
                let _ = end.recv();
                Ok(())
            };
            held.read(read).await
        });
        begun.await.unwrap();
        first.abort();
        assert!(first.await.is_err());
        // The second reader must wait for the only connection and must not find the pool empty.
        let second = tokio::time::timeout(Duration::from_millis(50), readers.read(number)).await;
        assert!(second.is_err(), "{second:?}");
        ends.send(()).unwrap();
        assert_eq!(readers.read(number).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn an_endless_read_is_interrupted_and_the_next_read_succeeds() {
        let (_directory, readers) = single_reader(Duration::from_millis(50));
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
                       SELECT count(*) FROM n";
        let read =
            move |db: &Connection| Ok(db.query_row(endless, [], |row| row.get::<_, i64>(0))?);
        let given_up = tokio::time::timeout(Duration::from_secs(60), readers.read(read)).await;
        let error = given_up.expect("it is given up").unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert_eq!(readers.read(number).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn waiting_too_long_for_a_connection_fails() {
        let (_directory, readers) = single_reader(Duration::from_millis(50));
        let (begins, begun) = oneshot::channel();
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let held = Arc::clone(&readers);
        let first = tokio::spawn(async move {
            let read = move |_: &Connection| {
                let _ = begins.send(());
                let _ = end.recv();
                Ok(())
            };
            held.read(read).await
        });
        begun.await.unwrap();
        assert!(matches!(readers.read(number).await, Err(StoreError::Unavailable(_))));
        ends.send(()).unwrap();
        first.await.unwrap().unwrap();
    }
}
