//! The interfaces that the caller of a crawl implements: an archive for pages and a listener for
//! progress.

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{PageId, Progress};

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    /// The error message with all its causes.
    pub message: String,
    /// True if the same call may succeed some time later.
    pub passes: bool,
}

/// Stores the pages of one job. A crawl makes one call to its archive at a time, with at most 32
/// pages.
#[async_trait]
pub trait PageArchive: Send + Sync {
    /// Returns the stored versions of these pages in any order, without pages that are not stored.
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError>;

    /// Stores all pages or none. The returned results are in the order of `pages`, which contains
    /// no page twice.
    async fn save(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError>;

    /// Records that the crawl found these pages unchanged.
    async fn mark_seen(&self, pages: &[PageId]) -> Result<(), ArchiveError>;

    async fn delete(&self, pages: &[PageId]) -> Result<(), ArchiveError>;
}

/// Receives the progress of a crawl. Implementations must not block.
pub trait Listener: Send + Sync {
    fn progress(&self, progress: Progress);

    /// Appends a line to the log of the attempt; `line` has no line break.
    fn log(&self, line: &str);

    /// Saves a checkpoint. Every page that must be saved is already in the archive or still in the
    /// checkpoint's queue.
    fn checkpoint(&self, data: Vec<u8>);
}
