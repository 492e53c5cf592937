//! Looks after the write-ahead log, so that it does not grow for ever and nobody waits for that.
//!
//! Copying a long log into the file takes a good part of a second. A thread of its own does it
//! beside the writer; but as the writer goes on appending meanwhile, the thread alone would never
//! reach the end, and only a log that is copied to the end starts again from its beginning. So the
//! thread copies until little is left, and the writer copies that little between two commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use tracing::warn;

use crate::{OpenError, SqliteOptions};

/// So many pages the writer copies itself: some ten milliseconds.
const LITTLE: i32 = 1_000;
/// After so many rounds the thread is not keeping up, and the writer copies all there is.
const ROUNDS_MAX: u32 = 6;
/// A file of at least twice the length of so many logs lets them grow to that many times the usual
/// length: a page that is changed often is then copied once for all of it.
const LONGER_MAX: i32 = 4;
/// The thread is at work.
const BUSY: i32 = -1;

pub(crate) struct Log {
    /// Pages in it, as of the last commit.
    pages: Arc<AtomicI32>,
    /// How many of them the thread has copied, or [`BUSY`].
    copied: Arc<AtomicI32>,
    copier: SyncSender<()>,
    threshold: i32,
    rounds: u32,
}

impl Log {
    pub(crate) fn start(
        options: &SqliteOptions,
        writer: &mut Connection,
    ) -> Result<Self, OpenError> {
        let pages = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut Wal, pages| {
            seen.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        let copied = Arc::new(AtomicI32::new(0));
        let (copier, orders) = sync_channel(1);
        let connection = crate::connection::open::log_copier(options)?;
        let report = Arc::clone(&copied);
        std::thread::Builder::new()
            .name("sqlite-log".into())
            .spawn(move || copy_when_told(&connection, &orders, &report))
            .map_err(OpenError::Thread)?;
        let threshold = i32::try_from(options.wal_autocheckpoint_pages).unwrap_or(i32::MAX).max(1);
        Ok(Self { pages, copied, copier, threshold, rounds: 0 })
    }

    /// Called between two commits.
    pub(crate) fn look_after(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let copied = self.copied.load(Ordering::Acquire);
        if pages < self.threshold || copied == BUSY || pages < self.length(writer) {
            return;
        }
        let nearly_done = self.rounds > 0 && pages - copied <= LITTLE;
        if nearly_done || self.rounds >= ROUNDS_MAX {
            copy(writer);
            self.rounds = 0;
        } else {
            self.rounds += 1;
            self.copied.store(BUSY, Ordering::Release);
            if self.copier.try_send(()).is_err() {
                // Without the thread the writer is slower, not wrong.
                self.copied.store(0, Ordering::Release);
                self.rounds = ROUNDS_MAX;
            }
        }
    }

    /// How long it may grow: half as long as the file, within bounds. A file whose length cannot be told
    /// counts as a small one.
    fn length(&self, writer: &Connection) -> i32 {
        let pages = writer
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut count| count.query_row([], |row| row.get::<_, i64>(0)));
        let half = pages.map_or(0, |pages| i32::try_from(pages / 2).unwrap_or(i32::MAX));
        half.clamp(self.threshold, self.threshold.saturating_mul(LONGER_MAX))
    }
}

fn copy_when_told(connection: &Connection, orders: &Receiver<()>, report: &AtomicI32) {
    while orders.recv().is_ok() {
        report.store(copy(connection), Ordering::Release);
    }
}

/// Copies what no reader still needs as it is, and says how many pages of the log are copied.
fn copy(connection: &Connection) -> i32 {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((_, copied)) => copied.max(0),
        Err(cause) => {
            warn!(error = %cause, "cannot copy the log into the database");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_copies_what_the_writer_wrote() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = SqliteOptions::new(directory.path().join("store"));
        let writer = crate::connection::open::writer(&options).expect("tables");
        let copier = crate::connection::open::log_copier(&options).expect("a connection");
        writer.execute_batch("CREATE TABLE something (x)").expect("a change");
        assert!(copy(&copier) > 0, "nothing of the log was copied");
        assert_eq!(copy(&copier), copy(&writer));
    }
}
