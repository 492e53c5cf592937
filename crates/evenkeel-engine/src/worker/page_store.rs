//! Where crawls keep their pages: in the store.

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, TenantNo};
use evenkeel_executors::{KeeperError, Library, PageKeeper};
use evenkeel_store::{Now, PageQuota, Store, StoreError};
use tokio::sync::Semaphore;

/// So many crawls of a node use the store at once: users wait for the same connections.
const LANE: usize = 2;

/// The pages of all jobs.
pub struct StorePages {
    store: Arc<dyn Store>,
    lane: Arc<Semaphore>,
}

impl StorePages {
    /// The pages in `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, lane: Arc::new(Semaphore::new(LANE)) }
    }
}

/// The pages of one.
struct StoreShelf {
    store: Arc<dyn Store>,
    lane: Arc<Semaphore>,
    shelf: PageQuota,
}

impl Library for StorePages {
    fn shelf(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageKeeper> {
        let shelf = PageQuota { tenant, job, bytes_max };
        let (store, lane) = (Arc::clone(&self.store), Arc::clone(&self.lane));
        Arc::new(StoreShelf { store, lane, shelf })
    }
}

#[async_trait]
impl PageKeeper for StoreShelf {
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, KeeperError> {
        let _turn = self.lane.acquire().await;
        self.store.known_pages(self.shelf.job, pages).await.map_err(failed)
    }

    async fn keep(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, KeeperError> {
        let _turn = self.lane.acquire().await;
        self.store.save_pages(self.shelf, pages, Now::Database).await.map_err(failed)
    }

    async fn see(&self, pages: &[PageId]) -> Result<(), KeeperError> {
        let _turn = self.lane.acquire().await;
        self.store.see_pages(self.shelf.job, pages, Now::Database).await.map_err(failed)
    }

    async fn forget(&self, pages: &[PageId]) -> Result<(), KeeperError> {
        let _turn = self.lane.acquire().await;
        self.store.prune_pages(self.shelf.job, pages).await.map(drop).map_err(failed)
    }
}

/// An error with all its causes. Whether a verb took effect may be unknown, but all of these can be
/// repeated.
fn failed(error: StoreError) -> KeeperError {
    let passes = error.is_outage();
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause {
        message = format!("{message}: {source}");
        cause = source.source();
    }
    KeeperError { message, passes }
}
