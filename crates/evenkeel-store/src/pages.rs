//! Verbs on the pages that crawls keep.

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobId, JobNo, PageId, SearchQuery, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The room a job has for pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageQuota {
    /// Whose.
    pub tenant: TenantNo,
    /// Of which job.
    pub job: JobNo,
    /// All pages together may take this much, as [`PageContent::size`] counts.
    pub bytes_max: u64,
}

impl PageQuota {
    /// Does a page of `new` bytes fit in the place of one of `old` (0 if there is none), where
    /// pages take `used` now? One that does not grow always does, also if the room was made
    /// smaller since.
    pub const fn fits(&self, used: u64, old: u64, new: u64) -> bool {
        (old > 0 && new <= old) || used.saturating_sub(old).saturating_add(new) <= self.bytes_max
    }
}

/// A page as people see it.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredPage {
    /// Its job.
    pub job: JobId,
    /// What was found.
    pub content: PageContent,
    /// When it was first kept.
    pub first_seen_at: Timestamp,
    /// When its content last changed.
    pub changed_at: Timestamp,
    /// When a crawl last saw it.
    pub seen_at: Timestamp,
}

/// Which pages to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageFilter {
    /// Those with these words, best first. Without: all, in the order of their numbers.
    pub query: Option<SearchQuery>,
    /// Those of this job.
    pub job: Option<JobId>,
    /// Those whose URL starts with this, letter by letter. It narrows down what the other
    /// conditions find; alone it looks at all pages of the tenant.
    pub url_prefix: Option<String>,
}

/// A page that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct PageHit {
    /// Its id.
    pub id: PageId,
    /// Its job.
    pub job: JobId,
    /// Where it is.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// The part of its text where the words are, or its beginning. What was looked for stands
    /// between [`MARK_START`] and [`MARK_END`]; the text itself holds neither.
    pub snippet: String,
    /// When its content last changed.
    pub changed_at: Timestamp,
    /// When a crawl last saw it.
    pub seen_at: Timestamp,
}

/// Stands before a word that was looked for. No kept text holds it.
pub const MARK_START: char = '\u{2}';
/// Stands after a word that was looked for. No kept text holds it.
pub const MARK_END: char = '\u{3}';

/// A search shows so many pages at once: it reads the texts of all that it shows.
pub const SEARCH_LIMIT_MAX: u32 = 100;

/// The place of a page in the order of their numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageNo(pub i64);

verbs! {
    /// What crawls and readers do with pages.
    ///
    /// **Texts.** No text of a kept page holds NUL, [`MARK_START`] or [`MARK_END`]: the store puts a
    /// space in their place ([`text::clean`](crate::text::clean)), also inside `metadata` and
    /// `fields`, before it counts the size.
    ///
    /// **Words.** Every store looks for the same words ([`text::words`](crate::text::words)): letters
    /// and digits, without regard to case and accents, no stemming; each Chinese character and kana is
    /// one. Of a title 4 KiB of words can be found, of a text 256 KiB; what comes later cannot. A
    /// phrase stands in the title or in the text, never across; PostgreSQL may miss one that comes
    /// after the first 16,000 words of a page, or after one of its words has come 250 times.
    trait PageStore {}

    /// What is known of these pages of a job, in any order; of those that are not known, nothing.
    read fn known_pages(job: JobNo, pages: &[PageId]) -> Vec<KnownPage>;

    /// Keeps pages, all in one transaction. Answers are in the order given; a page is in the batch
    /// once. A page that is known with the same content hash is only noted as seen (with its new
    /// `etag` and `last_modified`). A page that does not fit into the room left
    /// ([`PageQuota::fits`]) is left out, and its old content, if there is one, stays. Those that come
    /// first get the room. If the job is deleted, or not the tenant's, all of them are
    /// [`Kept::NoRoom`].
    ///
    /// Batches are small, some 50 pages or a MiB: SQLite's one writer has jobs to fire.
    write fn save_pages(shelf: PageQuota, pages: Vec<PageContent>, now: Now) -> Vec<Kept>;

    /// Notes that pages of a job were seen and have not changed. Of those that are not known,
    /// nothing.
    write fn see_pages(job: JobNo, pages: &[PageId], now: Now) -> ();

    /// Forgets pages of a job that are gone from their site; their room is free. Says how many
    /// there were.
    write fn prune_pages(job: JobNo, pages: &[PageId]) -> u64;

    /// Forgets pages of deleted jobs, at most `limit`. Says how many: fewer than `limit` only if
    /// there are no more, but for those that another node is clearing. Quick if there are none.
    write fn clear_pages(limit: u32) -> u64;

    /// The scope's pages that the filter names. Pages of deleted jobs are never among them.
    ///
    /// With a query they are paged by `offset` alone, at most [`SEARCH_LIMIT_MAX`] at once
    /// whatever `limit` says, and `next` is `None`. Pages that have all
    /// that is wanted in their title come first, then those where it is said more, or more of
    /// what is said; equals in the order of their numbers. Of more than 10,000 that fit only so
    /// many are ranked. The total is exact up to 10,000.
    read fn list_pages(scope: &Scope, filter: &PageFilter, page: PageRequest<PageNo>)
        -> Page<PageHit, PageNo>;

    /// The page with this id, unless its job is deleted.
    read fn get_page(scope: &Scope, id: PageId) -> Option<StoredPage>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_if_the_room_is_enough_or_it_does_not_grow() {
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
