//! Options of the store.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The database file, created if it does not exist. The write-ahead log (`-wal`) and its index
    /// (`-shm`) are in the same directory.
    pub path: PathBuf,
    /// True if committed changes survive a power failure; false if they survive only a crash of the
    /// process.
    pub synchronous_full: bool,
    /// Size of the writer's page cache in MiB. A larger cache was not faster: the operating system
    /// keeps the same pages.
    pub cache_mb: u32,
    /// The number of connections for reads of users and crawls.
    pub readers: usize,
    /// The write-ahead log is copied into the database file when it has this many pages, or up to
    /// four times as many if the file is large. A higher threshold makes writes faster and needs
    /// more disk space.
    pub wal_autocheckpoint_pages: u32,
    /// The maximum size of the database file in pages. Writes beyond this size fail as on a full
    /// disk.
    pub pages_max: Option<u32>,
}

impl SqliteOptions {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            synchronous_full: true,
            cache_mb: 16,
            readers: 2,
            wal_autocheckpoint_pages: 40_000,
            pages_max: None,
        }
    }
}
