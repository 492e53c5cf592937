//! Keeps the write-ahead log short.
//!
//! Copying a long log into the database file takes several hundred milliseconds, so a separate
//! thread copies the log in parallel with the writer. SQLite reuses the log from its beginning only
//! after all pages are copied. The writer keeps appending to the log, so the copying thread alone
//! would never finish. Therefore the copying thread copies until few pages are left, and the writer
//! copies the last pages between two commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use tracing::warn;

use crate::{OpenError, SqliteOptions};

/// The writer copies up to this many pages of the log itself, which takes about 10 ms.
const WRITER_PAGES_MAX: i32 = 1_000;
/// If pages are left after this many rounds, the copying thread is too slow, and the writer copies
/// all remaining pages.
const ROUNDS_MAX: u32 = 6;
/// If the database file is large, the log may grow to this many times the threshold, but not beyond
/// half the length of the file. A longer log is copied less often, so a page that changes often is
/// copied fewer times.
const GROWTH_MAX: i32 = 4;
/// The copying thread is busy.
const BUSY: i32 = -1;

pub(crate) struct Log {
    /// The length of the log in pages at the last commit.
    pages: Arc<AtomicI32>,
    /// How many pages of the log the copying thread has copied, or [`BUSY`].
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
        let (copier, requests) = sync_channel(1);
        let connection = crate::connection::open::log_copier(options)?;
        let report = Arc::clone(&copied);
        std::thread::Builder::new()
            .name("sqlite-log".into())
            .spawn(move || copy_on_request(&connection, &requests, &report))
            .map_err(OpenError::Thread)?;
        let threshold = i32::try_from(options.wal_autocheckpoint_pages).unwrap_or(i32::MAX).max(1);
        Ok(Self { pages, copied, copier, threshold, rounds: 0 })
    }

    /// If the log is too long, copies the log or asks the copying thread to do so. The writer calls
    /// this function between two commits.
    pub(crate) fn copy_if_long(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        let copied = self.copied.load(Ordering::Acquire);
        if pages < self.threshold || copied == BUSY || pages < self.length_max(writer) {
            return;
        }
        let nearly_done = self.rounds > 0 && pages - copied <= WRITER_PAGES_MAX;
        if nearly_done || self.rounds >= ROUNDS_MAX {
            copy(writer);
            self.rounds = 0;
        } else {
            self.rounds += 1;
            self.copied.store(BUSY, Ordering::Release);
            if self.copier.try_send(()).is_err() {
                // The copying thread has ended, so the writer copies the log itself, which is
                // slower but safe.
                self.copied.store(0, Ordering::Release);
                self.rounds = ROUNDS_MAX;
            }
        }
    }

    /// Returns the length at which the log is copied: half the length of the file, within limits.
    /// If the length of the file is unknown, the file is treated as small.
    fn length_max(&self, writer: &Connection) -> i32 {
        let pages = writer
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut count| count.query_row([], |row| row.get::<_, i64>(0)));
        let half = pages.map_or(0, |pages| i32::try_from(pages / 2).unwrap_or(i32::MAX));
        half.clamp(self.threshold, self.threshold.saturating_mul(GROWTH_MAX))
    }
}

fn copy_on_request(connection: &Connection, requests: &Receiver<()>, report: &AtomicI32) {
    while requests.recv().is_ok() {
        report.store(copy(connection), Ordering::Release);
    }
}

/// Copies the part of the log that no reader needs. Returns how many pages of the log are copied.
fn copy(connection: &Connection) -> i32 {
    match connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
        Ok((_, copied)) => copied.max(0),
        Err(cause) => {
            warn!(error = %cause, "cannot copy SQLite's write-ahead log into the database file; will retry");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_copies_pages_of_the_writer() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = SqliteOptions::new(directory.path().join("store"));
        let writer = crate::connection::open::writer(&options).expect("tables");
        let copier = crate::connection::open::log_copier(&options).expect("a connection");
        writer.execute_batch("CREATE TABLE something (x)").expect("a change");
        assert!(copy(&copier) > 0, "no page of the log was copied");
        assert_eq!(copy(&copier), copy(&writer));
    }
}
