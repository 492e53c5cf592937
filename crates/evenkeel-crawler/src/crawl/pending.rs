//! What waits to be told to the archive.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::PageId;
use evenkeel_core::page::{Kept, PageContent};

use super::line::Line;
use super::{BATCH, Crawl, Stuck};
use crate::archive::ArchiveError;

/// Bytes of pages that wait at most, and one page more.
const BYTES_MAX: u64 = 256 * 1024;
/// Tries of a call to a archive that may succeed later, a second apart.
const TRIES: u32 = 10;
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// What waits to be told to the archive, in the order in which it is.
#[derive(Default)]
pub(super) struct Pending {
    pages: Vec<(u64, PageContent, Line)>,
    bytes: u64,
    seen: Vec<(u64, PageId)>,
    forgotten: Vec<PageId>,
}

/// As what a page is done with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Disposition {
    /// It was read.
    Crawled,
    /// It was asked for.
    Visited,
    /// It does not count against the limit of pages.
    NotVisited,
}

impl Pending {
    pub(super) fn keep(&mut self, no: u64, page: PageContent, line: Line) {
        self.bytes += page.size();
        self.pages.push((no, page, line));
    }

    pub(super) fn see(&mut self, no: u64, page: PageId) {
        self.seen.push((no, page));
    }

    pub(super) fn forget(&mut self, page: PageId) {
        self.forgotten.push(page);
    }

    /// Takes a page back that was to be kept. Its number, if it was there.
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
            || self.forgotten.len() >= BATCH
    }
}

impl Crawl {
    /// Tells the archive all that waits. What it has taken is settled, and only that.
    pub(super) async fn flush(&mut self) -> Result<(), Stuck> {
        let archive = Arc::clone(&self.archive);
        if !self.pending.pages.is_empty() {
            let contents = || self.pending.pages.iter().map(|(_, page, _)| page.clone()).collect();
            let kept = insist(|| archive.keep(contents())).await?;
            self.settle_kept(&kept).await?;
        }
        if !self.pending.seen.is_empty() {
            let ids: Vec<PageId> = self.pending.seen.iter().map(|(_, id)| *id).collect();
            insist(|| archive.see(&ids)).await?;
            for (no, _) in std::mem::take(&mut self.pending.seen) {
                self.close(no, Disposition::Crawled);
            }
        }
        while !self.pending.forgotten.is_empty() {
            let count = self.pending.forgotten.len().min(BATCH);
            insist(|| archive.forget(&self.pending.forgotten[..count])).await?;
            self.pending.forgotten.drain(..count);
        }
        Ok(())
    }

    async fn settle_kept(&mut self, kept: &[Kept]) -> Result<(), Stuck> {
        if let Some(export) = &mut self.export {
            let new = self.pending.pages.iter().zip(kept).filter(|(_, kept)| is_news(**kept));
            let pages: Vec<&PageContent> = new.map(|((_, page, _), _)| page).collect();
            if !export.write(&pages).await? {
                self.listener.log("the export is full: pages were left out of it");
            }
        }
        self.pending.bytes = 0;
        let pages = std::mem::take(&mut self.pending.pages);
        for ((no, page, mut line), kept) in pages.into_iter().zip(kept) {
            line.what = match kept {
                Kept::New => "new",
                Kept::Changed => "changed",
                Kept::Unchanged => "unchanged",
                Kept::NoRoom => "read, but there is no room left for it",
            }
            .into();
            self.listener.log(&line.text());
            self.tally.no_room += u64::from(*kept == Kept::NoRoom);
            if is_news(*kept) {
                self.tally.indexed += 1;
                self.contents.mark_indexed(&page.content_hash, page.id);
            }
            self.close(no, Disposition::Crawled);
        }
        Ok(())
    }
}

fn is_news(kept: Kept) -> bool {
    matches!(kept, Kept::New | Kept::Changed)
}

/// Calls a archive until it answers, for a while. All its verbs can be repeated.
pub(super) async fn insist<T, F>(call: impl Fn() -> F) -> Result<T, ArchiveError>
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
