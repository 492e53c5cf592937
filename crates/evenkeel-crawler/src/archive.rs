//! What a crawl needs from its caller: an archive for pages and a listener for progress.

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{PageId, Progress};

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    /// The error with its causes.
    pub message: String,
    /// True if the same call may succeed a little later.
    pub passes: bool,
}

/// Stores the pages of one job. The crawl makes one call at a time, with at most 32 pages.
#[async_trait]
pub trait PageArchive: Send + Sync {
    /// Returns what is stored of these pages, in any order.
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError>;

    /// Stores all pages or none. Results are in the order of `pages`, which are all different.
    async fn save(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError>;

    /// Records that pages were seen unchanged.
    async fn mark_seen(&self, pages: &[PageId]) -> Result<(), ArchiveError>;

    /// Deletes pages.
    async fn delete(&self, pages: &[PageId]) -> Result<(), ArchiveError>;
}

/// Receives the progress of a crawl. Calls must not block.
pub trait Listener: Send + Sync {
    fn progress(&self, progress: Progress);

    /// Appends a line to the log; `line` has no line break.
    fn log(&self, line: &str);

    /// Saves a checkpoint. Pages that are not in it are in the archive already.
    fn checkpoint(&self, data: Vec<u8>);
}
