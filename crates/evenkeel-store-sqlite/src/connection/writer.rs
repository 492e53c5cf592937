//! The writing thread, which commits waiting requests in groups.
//!
//! The writing thread takes all waiting requests, runs each request in a savepoint, commits once,
//! and replies after the commit. So all requests of a group share one disk sync, and no request
//! waits for further requests to arrive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use evenkeel_store::{StoreError, Unwritable};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::oneshot;
use tracing::{debug, error, warn};

use crate::connection::log::Log;
use crate::connection::session::Session;
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

/// Sends the reply to the caller once it is known whether the commit succeeded.
type Reply = Box<dyn FnOnce(Result<(), &CommitFailure>) + Send>;

/// The result of a request that ran inside the transaction.
struct RequestResult {
    changed: bool,
    /// Set if the request failed because the database cannot be written.
    unwritable: Option<Unwritable>,
    reply: Reply,
}

/// Runs a request inside a transaction. If the transaction could not begin, the request receives
/// the failure instead of a session.
type Request = Box<dyn FnOnce(Result<&mut Session, &CommitFailure>) -> RequestResult + Send>;

pub(crate) struct Writer {
    queue: Arc<Queue<Request>>,
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
        F: FnOnce(&mut Session) -> Answer<T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel::<Result<T, StoreError>>();
        let request: Request = Box::new(move |session| {
            let result = match session {
                Ok(session) => act(session).map_err(StoreError::from),
                Err(failure) => Err(failure.to_error()),
            };
            let changed = result.is_ok();
            let unwritable = result.as_ref().err().and_then(StoreError::unwritable);
            let reply: Reply = Box::new(move |committed| {
                let reply = match (result, committed) {
                    (Ok(value), Ok(())) => Ok(value),
                    (Ok(_), Err(failure)) => Err(failure.to_error()),
                    (Err(error), _) => Err(error),
                };
                // Sending fails only if the caller has stopped waiting.
                let _ = sender.send(reply);
            });
            RequestResult { changed, unwritable, reply }
        });
        if self.queue.push(urgency, rows, request).await.is_err() {
            return Err(unavailable("the store is closed"));
        }
        receiver.await.unwrap_or_else(|_| Err(unavailable("the writer dropped the request")))
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

fn commit_together(session: &mut Session, group: Vec<Request>) {
    if let Err(cause) = session.execute_batch("BEGIN IMMEDIATE") {
        let failure = CommitFailure::from(cause);
        failure.log("cannot begin a SQLite transaction; all requests for it fail");
        for request in group {
            (request(Err(&failure)).reply)(Ok(()));
        }
        return;
    }
    let is_single = group.len() == 1;
    let mut replies = Vec::with_capacity(group.len());
    let mut group = group.into_iter();
    let ran = group.by_ref().try_for_each(|request| {
        replies.extend(run_one(session, request, is_single)?);
        Ok(())
    });
    let committed = ran.and_then(|()| commit(session));
    if let Err(failure) = &committed {
        failure.log("SQLite commit failed; all requests in the transaction are rolled back");
        if !session.is_autocommit()
            && let Err(cause) = session.execute_batch("ROLLBACK")
        {
            error!(error = %cause, "cannot roll back a failed transaction; all requests in it fail");
        }
        session.clear_cache();
        // Requests that did not run have changed nothing in the database.
        for request in group {
            (request(Err(failure)).reply)(Ok(()));
        }
    }
    let committed = committed.as_ref().map(|&()| ());
    for reply in replies {
        reply(committed);
    }
}

/// Runs a request so that its failure rolls back only the changes of that request. Returns an error
/// if the whole transaction was rolled back.
fn run_one(
    session: &mut Session,
    request: Request,
    is_single: bool,
) -> Result<Option<Reply>, CommitFailure> {
    // A savepoint copies every page that changes, and a request that is alone in its transaction
    // needs no savepoint.
    if !is_single {
        session.execute_batch("SAVEPOINT request")?;
    }
    let ran = catch_unwind(AssertUnwindSafe(|| request(Ok(session))));
    let failed = !matches!(&ran, Ok(RequestResult { changed: true, .. }));
    if failed {
        session.clear_cache();
        // After some faults, such as a full disk, SQLite has already rolled back the transaction.
        if session.is_autocommit() {
            let reason = "another request of the same commit failed to write to the disk".into();
            let unwritable = ran.as_ref().ok().and_then(|ran| ran.unwritable);
            if let Ok(ran) = ran {
                (ran.reply)(Ok(()));
            }
            return Err(CommitFailure { unwritable, reason });
        }
        session.execute_batch(if is_single { "ROLLBACK" } else { "ROLLBACK TO request" })?;
    }
    if !is_single {
        session.execute_batch("RELEASE request")?;
    }
    // A request that panicked has dropped its reply, so its caller gets an error.
    Ok(ran.ok().map(|ran| ran.reply))
}

fn commit(session: &Session) -> Result<(), CommitFailure> {
    if session.is_autocommit() {
        return Ok(());
    }
    Ok(session.execute_batch("COMMIT")?)
}
