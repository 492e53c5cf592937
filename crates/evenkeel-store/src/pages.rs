//! Verbs on the pages that crawls keep.

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobId, JobNo, PageId, SearchQuery, TenantNo, Timestamp};

use crate::{Now, Page, PageRequest, Scope, StoreError};

/// The room a job has for pages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shelf {
    /// Whose.
    pub tenant: TenantNo,
    /// Of which job.
    pub job: JobNo,
    /// All pages together may take this much.
    pub bytes_max: u64,
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
    /// Those whose URL starts with this.
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

/// The place of a page in the order of their numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageNo(pub i64);

/// What crawls and readers do with pages.
#[async_trait]
pub trait PageStore: Send + Sync {
    /// What is known of these pages of a job, in any order; of those that are not known, nothing.
    async fn known_pages(&self, job: JobNo, pages: &[PageId])
    -> Result<Vec<KnownPage>, StoreError>;

    /// Keeps pages, all in one transaction. Answers are in the order given; a page is in the batch
    /// once. A page that is known with the same content hash is only noted as seen (with its new
    /// `etag` and `last_modified`). A page that does not fit into the room left is left out, and
    /// its old content, if there is one, stays.
    async fn keep_pages(
        &self,
        shelf: Shelf,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError>;

    /// Notes that pages were seen and have not changed.
    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError>;

    /// Forgets pages that are gone from their site. Says how many there were.
    async fn forget_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError>;

    /// Forgets pages of deleted jobs, at most `limit`. Says how many.
    async fn clear_pages(&self, limit: u32) -> Result<u64, StoreError>;

    /// The scope's pages that the filter names. Pages of deleted jobs are never among them. With a
    /// query they are paged by `offset` alone and `next` is `None`.
    async fn list_pages(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError>;

    /// The page with this id, unless its job is deleted.
    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError>;
}
