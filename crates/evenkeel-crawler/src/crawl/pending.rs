//! Collects pages and saves them in the archive in batches.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::PageId;
use evenkeel_core::page::{Kept, PageContent};

use super::{BATCH, Crawl, CrawlError};
use crate::archive::ArchiveError;

/// If waiting pages have this many bytes, the crawl saves them in the archive.
const BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of tries of a call to the archive, 1 s apart, if the error may be temporary.
const TRIES: u32 = 10;
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// New pages, unchanged pages and deletions that wait to be written to the archive.
#[derive(Default)]
pub(super) struct Pending {
    /// For each page, its number in the queue, its content, and the beginning of its log line.
    pages: Vec<(u64, PageContent, String)>,
    bytes: u64,
    /// Unchanged pages.
    pub(super) seen: Vec<(u64, PageId)>,
    pub(super) deleted: Vec<PageId>,
}

/// How a finished page is counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Disposition {
    /// Read.
    Crawled,
    /// Requested, but not read.
    Visited,
    /// Does not count against `max_pages`.
    NotVisited,
}

impl Pending {
    pub(super) fn save(&mut self, no: u64, page: PageContent, line: String) {
        self.bytes += page.size();
        self.pages.push((no, page, line));
    }

    /// Removes a page that waits to be saved. Returns the number of the page in the queue.
    pub(super) fn withdraw(&mut self, page: PageId) -> Option<u64> {
        let at = self.pages.iter().position(|(_, content, _)| content.id == page)?;
        let (no, content, _) = self.pages.remove(at);
        self.bytes -= content.size();
        Some(no)
    }

    pub(super) fn is_full(&self) -> bool {
        self.pages.len() >= BATCH
            || self.bytes >= BYTES_MAX
            || self.seen.len() >= BATCH
            || self.deleted.len() >= BATCH
    }
}

impl Crawl {
    /// Writes all waiting pages and deletions to the archive, and finishes these pages.
    pub(super) async fn flush(&mut self) -> Result<(), CrawlError> {
        let archive = Arc::clone(&self.archive);
        if !self.pending.pages.is_empty() {
            let contents = || self.pending.pages.iter().map(|(_, page, _)| page.clone()).collect();
            let kept = with_retries(|| archive.save(contents())).await?;
            self.finish_kept(&kept).await?;
        }
        if !self.pending.seen.is_empty() {
            let ids: Vec<PageId> = self.pending.seen.iter().map(|(_, id)| *id).collect();
            with_retries(|| archive.mark_seen(&ids)).await?;
            for (no, _) in std::mem::take(&mut self.pending.seen) {
                self.close(no, Disposition::Crawled);
            }
        }
        while !self.pending.deleted.is_empty() {
            let count = self.pending.deleted.len().min(BATCH);
            with_retries(|| archive.delete(&self.pending.deleted[..count])).await?;
            self.pending.deleted.drain(..count);
        }
        Ok(())
    }

    async fn finish_kept(&mut self, kept: &[Kept]) -> Result<(), CrawlError> {
        if let Some(export) = &mut self.export {
            let new = self.pending.pages.iter().zip(kept).filter(|(_, kept)| is_new(**kept));
            let pages: Vec<&PageContent> = new.map(|((_, page, _), _)| page).collect();
            if !export.write(&pages).await? {
                self.log("the export file is full: pages were left out");
            }
        }
        self.pending.bytes = 0;
        let pages = std::mem::take(&mut self.pending.pages);
        for ((no, page, line), kept) in pages.into_iter().zip(kept) {
            let what = match kept {
                Kept::New => "new",
                Kept::Changed => "changed",
                Kept::Unchanged => "unchanged",
                Kept::NoRoom => "read, but not saved: max_store_mb is reached",
            };
            self.log(format!("{line} {what}"));
            self.counts.no_room += u64::from(*kept == Kept::NoRoom);
            if is_new(*kept) {
                self.counts.indexed += 1;
                self.contents.mark_indexed(&page.content_hash, page.id);
            }
            self.close(no, Disposition::Crawled);
        }
        Ok(())
    }
}

fn is_new(kept: Kept) -> bool {
    matches!(kept, Kept::New | Kept::Changed)
}

/// Calls the archive, and repeats the call if the error may be temporary. All calls to the archive
/// can be repeated safely.
pub(super) async fn with_retries<T, F>(call: impl Fn() -> F) -> Result<T, ArchiveError>
where
    F: Future<Output = Result<T, ArchiveError>>,
{
    for _ in 1..TRIES {
        match call().await {
            Err(error) if error.passes => tokio::time::sleep(TRY_PAUSE).await,
            other => return other,
        }
    }
    call().await
}
