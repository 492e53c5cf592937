//! Options of the store.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The database file, created if it does not exist. Its log (`-wal`) and the index of the log
    /// (`-shm`) are beside it.
    pub path: PathBuf,
    /// True if committed changes survive a power failure; false if they survive only a crash of the
    /// process.
    pub synchronous_full: bool,
    /// The page cache of the writer in MiB.
    pub cache_mb: u32,
    /// The number of connections for reads of users and crawls.
    pub readers: usize,
    /// The log is copied into the file when it has this many pages; with a large file, up to four
    /// times as many. More is faster and needs more disk space.
    pub wal_autocheckpoint_pages: u32,
    /// The largest size of the file in pages. Writes beyond it fail as on a full disk.
    pub pages_max: Option<u32>,
}

impl SqliteOptions {
    /// Returns the defaults for the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous_full: true,
            cache_mb: 64,
            readers: 2,
            wal_autocheckpoint_pages: 40_000,
            pages_max: None,
        }
    }
}
