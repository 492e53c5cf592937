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
    /// Returns those of these pages that are stored, in any order.
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError>;

    /// Stores all pages or none. The results are in the order of `pages`, which are all different.
    async fn save(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError>;

    /// Records that the crawl found these pages unchanged.
    async fn mark_seen(&self, pages: &[PageId]) -> Result<(), ArchiveError>;

    /// Deletes pages.
    async fn delete(&self, pages: &[PageId]) -> Result<(), ArchiveError>;
}

/// Receives the progress of a crawl. Implementations must not block.
pub trait Listener: Send + Sync {
    fn progress(&self, progress: Progress);

    /// Appends a line to the log of the attempt; `line` has no line break.
    fn log(&self, line: &str);

    /// Saves a checkpoint. Pages that the checkpoint does not contain are already in the archive.
    fn checkpoint(&self, data: Vec<u8>);
}
