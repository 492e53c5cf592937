//! Verbs on the pages that crawls store.

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobId, JobNo, PageId, SearchQuery, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The storage quota of a job for pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageQuota {
    pub tenant: TenantNo,
    pub job: JobNo,
    /// The maximum size of all pages together, as [`PageContent::size`] counts.
    pub bytes_max: u64,
}

impl PageQuota {
    /// Returns true if a page of `new` bytes fits in place of one of `old` bytes (0 if it is new)
    /// when pages use `used` bytes. A page that does not grow always fits, even if the quota was
    /// lowered.
    pub const fn fits(&self, used: u64, old: u64, new: u64) -> bool {
        (old > 0 && new <= old) || used.saturating_sub(old).saturating_add(new) <= self.bytes_max
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct StoredPage {
    pub job: JobId,
    pub content: PageContent,
    pub first_seen_at: Timestamp,
    /// When the content last changed.
    pub changed_at: Timestamp,
    /// When a crawl last saw the page.
    pub seen_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageFilter {
    /// Pages with these words, best first. Without a query: all pages by number.
    pub query: Option<SearchQuery>,
    pub job: Option<JobId>,
    /// The exact start of the URL. It only narrows the other conditions: alone it reads all pages
    /// of the tenant.
    pub url_prefix: Option<String>,
}

/// A page in a list.
#[derive(Clone, PartialEq, Debug)]
pub struct PageHit {
    pub id: PageId,
    pub job: JobId,
    pub url: String,
    pub title: Option<String>,
    /// The part of the text with the words, or its beginning. Matches are between [`MARK_START`]
    /// and [`MARK_END`], which stored texts do not contain.
    pub snippet: String,
    /// When the content last changed.
    pub changed_at: Timestamp,
    /// When a crawl last saw the page.
    pub seen_at: Timestamp,
}

/// Precedes a match in a snippet. Stored texts do not contain it.
pub const MARK_START: char = '\u{2}';
/// Follows a match in a snippet. Stored texts do not contain it.
pub const MARK_END: char = '\u{3}';

/// The maximum number of results of a search at once, since it reads their texts.
pub const SEARCH_LIMIT_MAX: u32 = 100;

/// The number of a page.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageNo(pub i64);

verbs! {
    /// Verbs of crawls and readers on pages.
    ///
    /// **Texts.** Stored texts do not contain NUL, [`MARK_START`] or [`MARK_END`]: the store
    /// replaces them with spaces ([`text::clean`](crate::text::clean)), also inside `metadata` and
    /// `fields`, before it counts the size.
    ///
    /// **Words.** All stores index the same words ([`text::words`](crate::text::words)): letters
    /// and digits, without case and accents, without stemming; each Chinese character and each kana
    /// is a word. The first 4 KiB of words of a title and 256 KiB of a text are indexed. A phrase
    /// matches within the title or within the text. PostgreSQL may miss a phrase after the first
    /// 16,000 words of a page, or after 250 occurrences of one of its words.
    trait PageStore {}

    /// Returns what is known of these pages of a job, in any order, without unknown pages.
    read fn known_pages(job: JobNo, pages: &[PageId]) -> Vec<KnownPage>;

    /// Stores pages in one transaction. Returns the results in the order given. Each page occurs
    /// once. A page with an unchanged content hash is only marked as seen, with its new `etag` and
    /// `last_modified`. A page that does not fit ([`PageQuota::fits`]) is skipped and its old
    /// content stays; earlier pages of the batch get the space first. If the job is deleted or not
    /// of the tenant, all results are [`Kept::NoRoom`].
    ///
    /// Use small batches of about 50 pages or 1 MiB, since SQLite has a single writer, which also
    /// fires jobs.
    write fn save_pages(shelf: PageQuota, pages: Vec<PageContent>, now: Now) -> Vec<Kept>;

    /// Marks known pages of a job as seen and unchanged.
    write fn see_pages(job: JobNo, pages: &[PageId], now: Now) -> ();

    /// Deletes pages of a job that are gone from their site, and frees their space. Returns how
    /// many existed.
    write fn prune_pages(job: JobNo, pages: &[PageId]) -> u64;

    /// Deletes up to `limit` pages of deleted jobs. Returns their number: below `limit` only if no
    /// more are left, except for those that another node is deleting. Fast if there are none.
    write fn clear_pages(limit: u32) -> u64;

    /// Returns the scope's pages that pass the filter, without pages of deleted jobs.
    ///
    /// A search is paged by `offset` alone, with at most [`SEARCH_LIMIT_MAX`] results at once, and
    /// `next` is `None`. Pages with all terms in the title come first, then those with more
    /// occurrences; equal ones by number. If more than 10,000 pages match, only 10,000 of them are
    /// ranked. The total is exact up to 10,000.
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
