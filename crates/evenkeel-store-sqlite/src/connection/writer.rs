//! The one thread that writes, and its group commit.
//!
//! It takes everything that waits, runs each request in a savepoint of its own, commits once, and
//! only then answers: a sync to the disk is shared by all, and nobody waits for company.

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

/// Why all requests of a commit were undone.
struct Trouble {
    /// The database takes no changes.
    unwritable: Option<Unwritable>,
    why: String,
}

impl Trouble {
    fn to_error(&self) -> StoreError {
        let why = self.why.clone();
        match self.unwritable {
            Some(unwritable) => StoreError::NotWritable(unwritable, why.into()),
            None => unavailable(why),
        }
    }

    /// Says it in the log. What every try meets until an operator helps is said by others, once.
    fn log(&self, what: &'static str) {
        if self.unwritable.is_some() {
            debug!(error = self.why, "{what}");
        } else {
            warn!(error = self.why, "{what}");
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self { unwritable: unwritable(&error), why: error.to_string() }
    }
}

/// Tells the asker, once it is known whether the commit succeeded.
type Reply = Box<dyn FnOnce(Result<(), &Trouble>) + Send>;

/// A request that has run inside the transaction.
struct Ran {
    changed: bool,
    /// It failed because the database takes no changes.
    unwritable: Option<Unwritable>,
    reply: Reply,
}

/// Runs inside a transaction, or hears why there is none.
type Request = Box<dyn FnOnce(Result<&mut Session, &Trouble>) -> Ran + Send>;

/// Sends requests to the writing thread.
pub(crate) struct Writer {
    queue: Arc<Queue<Request>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(options: &SqliteOptions) -> Result<Self, OpenError> {
        let mut session = Session::new(crate::connection::open::writer(options)?);
        let mut log = Log::start(options, session.connection_mut())?;
        let queue = Arc::new(Queue::new());
        let requests = Arc::clone(&queue);
        let body = move || {
            while let Some(group) = requests.next_group() {
                commit_together(&mut session, group);
                log.look_after(session.connection());
            }
            fold_log(session.connection());
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(body)
            .map_err(OpenError::Thread)?;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Finishes what was accepted and takes nothing more. Afterwards all is in the file itself, unless
    /// somebody still reads from the log.
    pub(crate) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            error!("the thread that writes the database had panicked");
        }
    }

    /// Runs `act` and answers once it is committed. Whoever stops waiting changes nothing: what was
    /// queued is done. `rows` is about how many rows it writes.
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
        let (asker, answer) = oneshot::channel::<Result<T, StoreError>>();
        let request: Request = Box::new(move |session| {
            let result = match session {
                Ok(session) => act(session).map_err(StoreError::from),
                Err(trouble) => Err(trouble.to_error()),
            };
            let changed = result.is_ok();
            let unwritable = result.as_ref().err().and_then(StoreError::unwritable);
            let reply: Reply = Box::new(move |committed| {
                let told = match (result, committed) {
                    (Ok(value), Ok(())) => Ok(value),
                    (Ok(_), Err(trouble)) => Err(trouble.to_error()),
                    (Err(error), _) => Err(error),
                };
                // An asker who is gone needs no answer.
                let _ = asker.send(told);
            });
            Ran { changed, unwritable, reply }
        });
        if self.queue.push(urgency, rows, request).await.is_err() {
            return Err(unavailable("the store is closed"));
        }
        answer.await.unwrap_or_else(|_| Err(unavailable("the writer gave the request up")))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Copies the whole log into the file, so that the file can be copied alone.
fn fold_log(connection: &Connection) {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE) {
        Ok(_) => {}
        // Nothing is lost: the log is read when the file is opened again.
        Err(cause) => {
            warn!(error = %cause, "the log stays beside the database; copy both, or open it again");
        }
    }
}

fn commit_together(session: &mut Session, group: Vec<Request>) {
    if let Err(cause) = session.connection().execute_batch("BEGIN IMMEDIATE") {
        let trouble = Trouble::from(cause);
        trouble.log("cannot begin a transaction");
        for request in group {
            (request(Err(&trouble)).reply)(Ok(()));
        }
        return;
    }
    let alone = group.len() == 1;
    let mut replies = Vec::with_capacity(group.len());
    let mut trouble = None;
    let mut group = group.into_iter();
    for request in group.by_ref() {
        match run_one(session, request, alone) {
            Ok(reply) => replies.extend(reply),
            Err(cause) => {
                trouble = Some(cause);
                break;
            }
        }
    }
    let committed = match trouble {
        Some(cause) => Err(cause),
        None => commit(session),
    };
    if let Err(trouble) = &committed {
        trouble.log("a commit failed");
        if !session.connection().is_autocommit()
            && let Err(cause) = session.connection().execute_batch("ROLLBACK")
        {
            error!(error = %cause, "cannot roll back");
        }
        session.forget();
        // Those that had not had their turn changed nothing, either.
        for request in group {
            (request(Err(trouble)).reply)(Ok(()));
        }
    }
    let committed = committed.as_ref().map(|&()| ());
    for reply in replies {
        reply(committed);
    }
}

/// Runs a request so that its failure undoes only itself. An error means that the whole
/// transaction is lost.
fn run_one(session: &mut Session, request: Request, alone: bool) -> Result<Option<Reply>, Trouble> {
    let step =
        |session: &Session, sql| session.connection().execute_batch(sql).map_err(Trouble::from);
    // A savepoint keeps a copy of every page it changes: whoever is alone can do without.
    if !alone {
        step(session, "SAVEPOINT request")?;
    }
    let ran = catch_unwind(AssertUnwindSafe(|| request(Ok(session))));
    let failed = !matches!(&ran, Ok(Ran { changed: true, .. }));
    if failed {
        session.forget();
        // After some faults, such as a full disk, SQLite has undone everything by itself.
        if session.connection().is_autocommit() {
            let why = "another request of the same commit met a fault of the disk".into();
            let unwritable = ran.as_ref().ok().and_then(|ran| ran.unwritable);
            if let Ok(ran) = ran {
                (ran.reply)(Ok(()));
            }
            return Err(Trouble { unwritable, why });
        }
        step(session, if alone { "ROLLBACK" } else { "ROLLBACK TO request" })?;
    }
    if !alone {
        step(session, "RELEASE request")?;
    }
    // A request that panicked has dropped its asker.
    Ok(ran.ok().map(|ran| ran.reply))
}

fn commit(session: &Session) -> Result<(), Trouble> {
    if session.connection().is_autocommit() {
        return Ok(());
    }
    session.connection().execute_batch("COMMIT").map_err(Trouble::from)
}
