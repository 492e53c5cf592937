//! Gives the crawl executor access to the crawled pages in the store.

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, TenantNo};
use evenkeel_executors::{ArchiveError, PageArchive, PageArchives};
use evenkeel_store::{Now, PageQuota, Store, StoreError};
use tokio::sync::Semaphore;

/// Maximum number of crawls of a node that use the store at the same time. The limit leaves
/// database connections for API requests.
const LANE: usize = 2;

pub struct StorePages {
    store: Arc<dyn Store>,
    lane: Arc<Semaphore>,
}

impl StorePages {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, lane: Arc::new(Semaphore::new(LANE)) }
    }
}

struct StoreShelf {
    store: Arc<dyn Store>,
    lane: Arc<Semaphore>,
    shelf: PageQuota,
}

impl PageArchives for StorePages {
    fn for_job(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageArchive> {
        let shelf = PageQuota { tenant, job, bytes_max };
        let (store, lane) = (Arc::clone(&self.store), Arc::clone(&self.lane));
        Arc::new(StoreShelf { store, lane, shelf })
    }
}

#[async_trait]
impl PageArchive for StoreShelf {
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, ArchiveError> {
        let _turn = self.lane.acquire().await;
        self.store.known_pages(self.shelf.job, pages).await.map_err(failed)
    }

    async fn save(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, ArchiveError> {
        let _turn = self.lane.acquire().await;
        self.store.save_pages(self.shelf, pages, Now::Database).await.map_err(failed)
    }

    async fn mark_seen(&self, pages: &[PageId]) -> Result<(), ArchiveError> {
        let _turn = self.lane.acquire().await;
        self.store.see_pages(self.shelf.job, pages, Now::Database).await.map_err(failed)
    }

    async fn delete(&self, pages: &[PageId]) -> Result<(), ArchiveError> {
        let _turn = self.lane.acquire().await;
        self.store.prune_pages(self.shelf.job, pages).await.map(drop).map_err(failed)
    }
}

/// Converts a store error, with all its causes, to an executor error. The failed operation may have
/// been committed, but all page operations can be repeated safely.
fn failed(error: StoreError) -> ArchiveError {
    let passes = error.is_outage();
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause {
        message = format!("{message}: {source}");
        cause = source.source();
    }
    ArchiveError { message, passes }
}
