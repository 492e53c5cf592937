//! What a crawl asks of its surroundings.

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{PageId, Progress};

/// Pages that can't be kept or looked up.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ArchiveError {
    /// What happened, with its causes.
    pub message: String,
    /// May the same call succeed a little later?
    pub passes: bool,
}

/// Keeps the pages of one job. Calls come one at a time, with at most 32 pages.
#[async_trait]
pub trait PageArchive: Send + Sync {
    /// What is known of these pages, in any order; of those that are not known, nothing.
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError>;

    /// Keeps pages, all or none. Answers are in the order given; a page is in a batch once.
    async fn keep(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError>;

    /// Notes that pages were seen and have not changed.
    async fn see(&self, pages: &[PageId]) -> Result<(), ArchiveError>;

    /// Forgets pages.
    async fn forget(&self, pages: &[PageId]) -> Result<(), ArchiveError>;
}

/// Hears what a crawl has to say while it goes on. Nothing here may wait.
pub trait Listener: Send + Sync {
    /// How far it has come.
    fn progress(&self, progress: Progress);

    /// One line about what it did, without the line's end.
    fn log(&self, line: &str);

    /// What a later crawl can go on from. Everything that is not in it is kept already.
    fn checkpoint(&self, data: Vec<u8>);
}
