//! Store operations on the web pages of crawls.

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobId, JobNo, PageId, SearchQuery, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// Storage quota of a job for web pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageQuota {
    pub tenant: TenantNo,
    pub job: JobNo,
    /// Maximum total size of all pages of the job, measured by [`PageContent::size`].
    pub bytes_max: u64,
}

impl PageQuota {
    /// Returns true if a page of `new` bytes may replace its stored version of `old` bytes (0 for a
    /// new page) when the job already uses `used` bytes. A page that does not grow always fits,
    /// even if the quota was lowered.
    pub const fn fits(&self, used: u64, old: u64, new: u64) -> bool {
        (old > 0 && new <= old) || used.saturating_sub(old).saturating_add(new) <= self.bytes_max
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct StoredPage {
    pub job: JobId,
    pub content: PageContent,
    pub first_seen_at: Timestamp,
    /// When the content of the page last changed.
    pub changed_at: Timestamp,
    /// When a crawl last fetched the page.
    pub seen_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageFilter {
    /// Lists only pages that match this search, best match first. Without a search query, all pages
    /// are listed by number.
    pub query: Option<SearchQuery>,
    pub job: Option<JobId>,
    /// Lists only pages whose URL starts with this exact text. URL prefixes have no index, so
    /// without another condition all pages of the tenant are read.
    pub url_prefix: Option<String>,
}

/// A page in a list or search result.
#[derive(Clone, PartialEq, Debug)]
pub struct PageHit {
    pub id: PageId,
    pub job: JobId,
    pub url: String,
    pub title: Option<String>,
    /// The part of the page text that contains the searched words, or else the beginning of the
    /// text. Matches are enclosed in [`MARK_START`] and [`MARK_END`], which stored texts never
    /// contain.
    pub snippet: String,
    /// When the content of the page last changed.
    pub changed_at: Timestamp,
    /// When a crawl last fetched the page.
    pub seen_at: Timestamp,
}

/// Marks the start of a match in a snippet. Stored texts never contain this character.
pub const MARK_START: char = '\u{2}';
/// Marks the end of a match in a snippet. Stored texts never contain this character.
pub const MARK_END: char = '\u{3}';

/// Maximum number of results of one search request, because a search reads the texts of its
/// results.
pub const SEARCH_LIMIT_MAX: u32 = 100;

/// Internal number of a page.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageNo(pub i64);

verbs! {
    /// Store operations with which crawls save web pages and users search them.
    ///
    /// **Texts.** Before a text is stored and measured, each NUL, [`MARK_START`] and [`MARK_END`]
    /// in it is replaced with a space, also inside `metadata` and `fields` (see
    /// [`text::clean`](crate::text::clean)).
    ///
    /// **Words.** All stores index the same words (see [`text::words`](crate::text::words)). A word
    /// consists of letters and digits, ignoring case and accents, without stemming; each Chinese
    /// character and each kana is a word. The first 4 KiB of words of a page title and the first
    /// 256 KiB of words of its text are indexed. A phrase must match within the title or within the
    /// text. PostgreSQL may not find a phrase that starts after the first 16,000 words of a page,
    /// or after 250 occurrences of one of its words.
    trait PageStore {}

    /// Returns what is stored about these pages of a job, in any order, without unknown pages.
    read fn known_pages(job: JobNo, pages: &[PageId]) -> Vec<KnownPage>;

    /// Stores pages in one transaction. Returns the results in the order of `pages`. Each page may
    /// occur only once in the batch. A page with an unchanged content hash only gets a new
    /// `seen_at`, `etag` and `last_modified`. A page that exceeds the quota ([`PageQuota::fits`])
    /// is skipped and keeps its old content. Earlier pages of the batch use the quota first. If the
    /// job is deleted or belongs to another tenant, all results are [`Kept::NoRoom`].
    ///
    /// Use batches of about 50 pages or 1 MiB, because SQLite has only one writer, which also fires
    /// jobs.
    write fn save_pages(shelf: PageQuota, pages: Vec<PageContent>, now: Now) -> Vec<Kept>;

    /// Marks stored pages of a job as fetched and unchanged.
    write fn see_pages(job: JobNo, pages: &[PageId], now: Now) -> ();

    /// Deletes pages of a job that no longer exist on their website; they no longer use the job's
    /// quota. Returns the number of pages that existed.
    write fn prune_pages(job: JobNo, pages: &[PageId]) -> u64;

    /// Deletes up to `limit` pages of deleted jobs. Returns the number of deleted pages. A result
    /// below `limit` means that no pages of deleted jobs are left, except pages that another node
    /// is deleting. The call is fast if no pages have to be deleted.
    write fn clear_pages(limit: u32) -> u64;

    /// Returns the tenant's pages that pass the filter, without pages of deleted jobs.
    ///
    /// Search results are paged only by `offset`, with at most [`SEARCH_LIMIT_MAX`] results per
    /// request, and `next` is `None`. Pages with all search terms in the title come first, then
    /// pages with more occurrences of the terms, then pages with lower numbers. If more than 10,000
    /// pages match, only 10,000 of them are ranked. The total number of results is exact up to
    /// 10,000.
    read fn list_pages(scope: &Scope, filter: &PageFilter, page: PageRequest<PageNo>)
        -> Page<PageHit, PageNo>;

    /// Returns the page, unless its job is deleted.
    read fn get_page(scope: &Scope, id: PageId) -> Option<StoredPage>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_within_the_quota_or_if_it_does_not_grow() {
        let shelf = PageQuota { tenant: TenantNo(1), job: JobNo(1), bytes_max: 100 };
        for (used, old, new, fits) in [
            (0, 0, 100, true),
            (0, 0, 101, false),
            (100, 0, 0, true),
            (100, 40, 40, true),
            (100, 40, 41, false),
            (90, 40, 50, true),
            (500, 40, 39, true),
            (500, 0, 1, false),
        ] {
            assert_eq!(shelf.fits(used, old, new), fits, "{used} - {old} + {new}");
        }
    }
}
