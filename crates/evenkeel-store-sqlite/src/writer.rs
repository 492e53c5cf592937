//! The one thread that writes, and its group commit.
//!
//! It takes everything that waits, runs each request in a savepoint of its own, commits once, and
//! only then answers: a sync to the disk is shared by all, and nobody waits for company.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use evenkeel_store::StoreError;
use tokio::sync::oneshot;
use tracing::{error, warn};

use crate::error::{Answer, unavailable};
use crate::log::Log;
use crate::queue::{Queue, Urgency};
use crate::session::Session;
use crate::{OpenError, SqliteOptions};

/// Tells the asker, once it is known whether the commit succeeded. The text says why not.
type Reply = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// A request that has run inside the transaction.
struct Ran {
    changed: bool,
    reply: Reply,
}

type Request = Box<dyn FnOnce(&mut Session) -> Ran + Send>;

/// Sends requests to the writing thread.
pub(crate) struct Writer {
    queue: Arc<Queue<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(options: &SqliteOptions) -> Result<Self, OpenError> {
        let mut session = Session::new(crate::open::writer(options)?);
        let mut log = Log::start(options, session.connection_mut())?;
        let queue = Arc::new(Queue::new());
        let requests = Arc::clone(&queue);
        let body = move || {
            while let Some(group) = requests.next_group() {
                commit_together(&mut session, group);
                log.look_after(session.connection());
            }
        };
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(body)
            .map_err(OpenError::Thread)?;
        Ok(Self { queue, thread: Some(thread) })
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
            let result = act(session).map_err(StoreError::from);
            let changed = result.is_ok();
            let reply: Reply = Box::new(move |committed| {
                let told = match (result, committed) {
                    (Ok(value), Ok(())) => Ok(value),
                    (Ok(_), Err(why)) => Err(unavailable(why)),
                    (Err(error), _) => Err(error),
                };
                // An asker who is gone needs no answer.
                let _ = asker.send(told);
            });
            Ran { changed, reply }
        });
        if self.queue.push(urgency, rows, request).await.is_err() {
            return Err(unavailable("the store is closed"));
        }
        answer.await.unwrap_or_else(|_| Err(unavailable("the writer gave the request up")))
    }
}

impl Drop for Writer {
    /// Finishes what was accepted; after this the file is closed.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the thread that writes the database had panicked");
        }
    }
}

fn commit_together(session: &mut Session, group: Vec<Request>) {
    // Requests that are dropped tell their askers that nothing is known.
    if let Err(cause) = session.connection().execute_batch("BEGIN IMMEDIATE") {
        warn!(error = %cause, "cannot begin a transaction");
        return;
    }
    let alone = group.len() == 1;
    let mut replies = Vec::with_capacity(group.len());
    let mut trouble = None;
    for request in group {
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
    if let Err(cause) = &committed {
        warn!(error = %cause, requests = replies.len(), "a commit failed");
        if !session.connection().is_autocommit()
            && let Err(cause) = session.connection().execute_batch("ROLLBACK")
        {
            error!(error = %cause, "cannot roll back");
        }
        session.forget();
    }
    let committed = committed.as_ref().map(|&()| ()).map_err(String::as_str);
    for reply in replies {
        reply(committed);
    }
}

/// Runs a request so that its failure undoes only itself. An error means that the whole
/// transaction is lost.
fn run_one(session: &mut Session, request: Request, alone: bool) -> Result<Option<Reply>, String> {
    let step = |session: &Session, sql| {
        session.connection().execute_batch(sql).map_err(|cause| cause.to_string())
    };
    // A savepoint keeps a copy of every page it changes: whoever is alone can do without.
    if !alone {
        step(session, "SAVEPOINT request")?;
    }
    let ran = catch_unwind(AssertUnwindSafe(|| request(session)));
    let failed = !matches!(&ran, Ok(Ran { changed: true, .. }));
    if failed {
        session.forget();
        // After some faults, such as a full disk, SQLite has undone everything by itself.
        if session.connection().is_autocommit() {
            if let Ok(ran) = ran {
                (ran.reply)(Ok(()));
            }
            return Err("another request of the same commit met a fault of the disk".into());
        }
        step(session, if alone { "ROLLBACK" } else { "ROLLBACK TO request" })?;
    }
    if !alone {
        step(session, "RELEASE request")?;
    }
    // A request that panicked has dropped its asker.
    Ok(ran.ok().map(|ran| ran.reply))
}

fn commit(session: &Session) -> Result<(), String> {
    if session.connection().is_autocommit() {
        return Ok(());
    }
    session.connection().execute_batch("COMMIT").map_err(|cause| cause.to_string())
}
