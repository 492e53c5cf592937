//! How a store is opened.

use std::path::PathBuf;

/// Where the database is and how careful it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Its file, made if there is none. Beside it lie its log (`-wal`) and the log's index (`-shm`).
    pub path: PathBuf,
    /// Is an answered command safe from a power failure? If not, only from a crash of the process.
    pub synchronous_full: bool,
    /// Memory for pages of the writer, in MiB.
    pub cache_mb: u32,
    /// How many people and crawls can read at once, beside the writer and the engine.
    pub readers: usize,
    /// The log is copied into the file when it has grown to this many pages; beside a large file, to
    /// up to four times as many. More is faster, and needs more disk.
    pub wal_autocheckpoint_pages: u32,
    /// The file may have this many pages; what needs more fails as on a full disk.
    pub pages_max: Option<u32>,
}

impl SqliteOptions {
    /// The defaults, for the file at `path`.
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
