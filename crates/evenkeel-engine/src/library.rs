//! Where crawls keep their pages: in the store.

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, TenantNo};
use evenkeel_executors::{KeeperError, Library, PageKeeper};
use evenkeel_store::{Now, Shelf, Store, StoreError};

/// The pages of all jobs.
pub struct StoreLibrary(pub Arc<dyn Store>);

/// The pages of one.
struct StoreShelf {
    store: Arc<dyn Store>,
    shelf: Shelf,
}

impl Library for StoreLibrary {
    fn shelf(&self, tenant: TenantNo, job: JobNo, bytes_max: u64) -> Arc<dyn PageKeeper> {
        let shelf = Shelf { tenant, job, bytes_max };
        Arc::new(StoreShelf { store: Arc::clone(&self.0), shelf })
    }
}

#[async_trait]
impl PageKeeper for StoreShelf {
    async fn known(&self, pages: &[PageId]) -> Result<Vec<KnownPage>, KeeperError> {
        self.store.known_pages(self.shelf.job, pages).await.map_err(failed)
    }

    async fn keep(&self, pages: Vec<PageContent>) -> Result<Vec<Kept>, KeeperError> {
        self.store.keep_pages(self.shelf, pages, Now::Database).await.map_err(failed)
    }

    async fn see(&self, pages: &[PageId]) -> Result<(), KeeperError> {
        self.store.see_pages(self.shelf.job, pages, Now::Database).await.map_err(failed)
    }

    async fn forget(&self, pages: &[PageId]) -> Result<(), KeeperError> {
        self.store.forget_pages(self.shelf.job, pages).await.map(drop).map_err(failed)
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
