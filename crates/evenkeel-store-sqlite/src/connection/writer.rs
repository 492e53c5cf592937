//! The writing thread, which commits waiting requests in groups.
//!
//! The writing thread takes all waiting requests, runs them in one transaction, and replies after
//! the commit. So all requests of a group share one disk sync, and no request waits for further
//! requests to arrive. A request that fails rolls back only its own changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use evenkeel_store::{StoreError, Unwritable};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::oneshot;
use tracing::{debug, error, warn};

use crate::connection::log::Log;
use crate::connection::session::{Cached, Session};
use crate::connection::urgency::{Queue, Urgency};
use crate::error::{Answer, unavailable, unwritable};
use crate::{OpenError, SqliteOptions};

/// Why all requests of a commit were rolled back.
struct CommitFailure {
    /// Set if the commit failed because the database cannot be written.
    unwritable: Option<Unwritable>,
    reason: String,
}

impl CommitFailure {
    fn to_error(&self) -> StoreError {
        let reason = self.reason.clone();
        match self.unwritable {
            Some(unwritable) => StoreError::NotWritable(unwritable, reason.into()),
            None => unavailable(reason),
        }
    }

    /// Logs the failure. While the database cannot be written, every request fails and the engine
    /// reports it once, so this function logs at debug level.
    fn log(&self, what: &'static str) {
        if self.unwritable.is_some() {
            debug!(error = self.reason, "{what}");
        } else {
            warn!(error = self.reason, "{what}");
        }
    }
}

impl From<rusqlite::Error> for CommitFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self { unwritable: unwritable(&error), reason: error.to_string() }
    }
}

/// A request of a caller that waits for the commit. The writer may run a request twice, if the
/// first transaction was rolled back.
trait Request: Send {
    /// Runs the request inside a transaction.
    fn run(&mut self, session: &mut Session) -> Ran;

    /// Tells the caller the result of the last run, once it is known whether the commit succeeded.
    fn reply(self: Box<Self>, committed: Result<(), &CommitFailure>);

    /// True for a command of a user, which fails more often than a request of the engine.
    fn is_command(&self) -> bool;
}

/// Whether a request succeeded.
#[derive(Copy, Clone)]
enum Ran {
    Done,
    /// The reason is set if the request failed because the database cannot be written.
    Failed(Option<Unwritable>),
}

struct Write<T, F> {
    act: F,
    urgency: Urgency,
    /// `None` if the request did not run, or panicked.
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Request for Write<T, F>
where
    T: Send,
    F: Fn(&mut Session) -> Answer<T> + Send,
{
    fn run(&mut self, session: &mut Session) -> Ran {
        self.result = None;
        let act = AssertUnwindSafe(|| (self.act)(session).map_err(StoreError::from));
        self.result = catch_unwind(act).ok();
        match &self.result {
            Some(Ok(_)) => Ran::Done,
            Some(Err(error)) => Ran::Failed(error.unwritable()),
            None => Ran::Failed(None),
        }
    }

    fn reply(self: Box<Self>, committed: Result<(), &CommitFailure>) {
        let reply = match (self.result, committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(failure)) => Err(failure.to_error()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(unavailable("the request panicked")),
        };
        // Sending fails only if the caller has stopped waiting.
        let _ = self.caller.send(reply);
    }

    fn is_command(&self) -> bool {
        self.urgency == Urgency::Command
    }
}

pub(crate) struct Writer {
    queue: Arc<Queue<Box<dyn Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(options: &SqliteOptions) -> Result<Self, OpenError> {
        let mut connection = crate::connection::open::writer(options)?;
        let mut log = Log::start(options, &mut connection)?;
        let mut session = Session::new(connection);
        let queue = Arc::new(Queue::new());
        let requests = Arc::clone(&queue);
        let body = move || {
            while let Some(group) = requests.next_group() {
                commit_together(&mut session, group);
                log.copy_if_long(&session);
            }
            copy_whole_log(&session);
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(body)
            .map_err(OpenError::Thread)?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Finishes the accepted requests and refuses new ones. After the call the database file holds
    /// all data, unless a reader still uses the log.
    pub(crate) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            error!(
                "the thread that writes to the SQLite database panicked; changes that it had not committed are lost"
            );
        }
    }

    /// Runs `act` on the writing thread and returns once its changes are committed. A queued
    /// request runs even if the caller stops waiting. `rows` estimates how many rows the request
    /// writes.
    pub(crate) async fn write<T, F>(
        &self,
        urgency: Urgency,
        rows: usize,
        act: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&mut Session) -> Answer<T> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel::<Result<T, StoreError>>();
        let request = Box::new(Write { act, urgency, result: None, caller });
        if self.queue.push(urgency, rows, request).await.is_err() {
            return Err(unavailable("the store is closed"));
        }
        answer.await.unwrap_or_else(|_| Err(unavailable("the writer dropped the request")))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Copies the whole log into the database file, so that the file alone holds all data.
fn copy_whole_log(connection: &Connection) {
    // If copying the log fails, no data is lost: SQLite reads the log when the file is opened
    // again.
    if let Err(cause) = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE) {
        warn!(error = %cause, "cannot copy SQLite's write-ahead log into the database file; a backup needs both files");
    }
}

/// Runs all requests in one transaction and replies to their callers.
fn commit_together(session: &mut Session, mut group: Vec<Box<dyn Request>>) {
    let before = session.cached();
    let mut committed = run_together(session, &mut group);
    if matches!(committed, Ok(false)) {
        roll_back(session, before.clone());
        // A request that is alone has failed, and its caller gets the error.
        committed = if group.len() == 1 { Ok(true) } else { run_apart(session, &mut group) };
    }
    if let Err(failure) = &committed {
        failure.log("SQLite commit failed; all requests in the transaction are rolled back");
        roll_back(session, before);
    }
    let committed = committed.as_ref().map(|_| ());
    for request in group {
        request.reply(committed);
    }
}

/// Runs the requests and commits. Returns false if a request without a savepoint failed, and nothing
/// was committed.
///
/// A savepoint copies every page that changes, so only commands that share the transaction run in
/// savepoints: they are small and may fail. A request of the engine hardly ever fails.
fn run_together(
    session: &mut Session,
    group: &mut [Box<dyn Request>],
) -> Result<bool, CommitFailure> {
    session.execute_batch("BEGIN IMMEDIATE")?;
    let is_alone = group.len() == 1;
    for request in group {
        if request.is_command() && !is_alone {
            run_in_savepoint(session, &mut **request)?;
        } else if let Ran::Failed(_) = request.run(session) {
            return Ok(false);
        }
    }
    commit(session)?;
    Ok(true)
}

/// Runs the requests and commits, so that the failure of a request rolls back only its own changes.
fn run_apart(session: &mut Session, group: &mut [Box<dyn Request>]) -> Result<bool, CommitFailure> {
    session.execute_batch("BEGIN IMMEDIATE")?;
    for request in group {
        run_in_savepoint(session, &mut **request)?;
    }
    commit(session)?;
    Ok(true)
}

/// Fails if the whole transaction was rolled back.
fn run_in_savepoint(session: &mut Session, request: &mut dyn Request) -> Result<(), CommitFailure> {
    let before = session.cached();
    session.execute_batch("SAVEPOINT request")?;
    if let Ran::Failed(unwritable) = request.run(session) {
        // After some faults, such as a full disk, SQLite has already rolled back the transaction.
        if session.is_autocommit() {
            let reason = "another request of the same commit failed to write to the disk".into();
            return Err(CommitFailure { unwritable, reason });
        }
        session.restore(before);
        session.execute_batch("ROLLBACK TO request")?;
    }
    Ok(session.execute_batch("RELEASE request")?)
}

/// Ends a failed transaction, if SQLite has not ended it already.
fn roll_back(session: &mut Session, before: Cached) {
    session.restore(before);
    if !session.is_autocommit()
        && let Err(cause) = session.execute_batch("ROLLBACK")
    {
        error!(error = %cause, "cannot roll back a failed transaction; all requests in it fail");
    }
}

fn commit(session: &Session) -> Result<(), CommitFailure> {
    if session.is_autocommit() {
        return Ok(());
    }
    Ok(session.execute_batch("COMMIT")?)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::error::unavailable;

    fn count(session: &Session) -> Answer<i64> {
        Ok(session.query_row("SELECT count(*) FROM something", [], |row| row.get(0))?)
    }

    fn insert(session: &mut Session) -> Answer<i64> {
        session.execute_batch("INSERT INTO something VALUES (1)")?;
        count(session)
    }

    fn fail(session: &mut Session) -> Answer<i64> {
        insert(session)?;
        Err(unavailable("on purpose").into())
    }

    fn panic(session: &mut Session) -> Answer<i64> {
        insert(session)?;
        panic!("on purpose");
    }

    #[tokio::test]
    async fn failed_request_loses_only_its_own_changes() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Writer::start(&SqliteOptions::new(folder.path().join("store"))).unwrap();
        let create = |session: &mut Session| {
            Ok(session.execute_batch("CREATE TABLE something (x INTEGER)")?)
        };
        writer.write(Urgency::Command, 1, create).await.unwrap();
        assert!(writer.write(Urgency::Batch, 1, fail).await.is_err());
        assert!(writer.write(Urgency::Command, 1, panic).await.is_err());
        // The first request blocks the writer until all other requests wait for the next commit.
        let (go, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let block = move |_: &mut Session| {
            // If the requests share a commit, this request runs twice.
            let _ = wait.lock().unwrap().recv();
            Ok(())
        };
        let blocked = writer.write(Urgency::Command, 1, block);
        let write = |urgency, act: fn(&mut Session) -> Answer<i64>| writer.write(urgency, 1, act);
        let release = async move {
            tokio::task::yield_now().await;
            drop(go);
        };
        let (blocked, first, second, third, fourth, fifth, sixth, ()) = tokio::join!(
            blocked,
            write(Urgency::Batch, insert),
            write(Urgency::Batch, fail),
            write(Urgency::End, panic),
            write(Urgency::Command, fail),
            write(Urgency::Command, insert),
            write(Urgency::End, insert),
            release,
        );
        blocked.unwrap();
        let others = [first, second, third, fourth, fifth, sixth];
        assert_eq!(others.map(|it| it.is_ok()), [true, false, false, false, true, true]);
        let stored = writer.write(Urgency::Command, 1, |session| count(session)).await.unwrap();
        assert_eq!(stored, 3);
    }
}
