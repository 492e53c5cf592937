//! Pages that crawls store, and full-text search in them. All statements about pages use the API
//! connections.

mod list;
mod matching;
mod prune;
mod save;
mod search;

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId};
use evenkeel_store::{
    Now, Page, PageFilter, PageHit, PageNo, PageQuota, PageRequest, PageStore, Scope, StoreError,
    StoredPage,
};
use uuid::Uuid;

use crate::PostgresStore;

#[async_trait]
impl PageStore for PostgresStore {
    async fn known_pages(
        &self,
        job: JobNo,
        pages: &[PageId],
    ) -> Result<Vec<KnownPage>, StoreError> {
        save::known(self, job, pages).await
    }

    async fn save_pages(
        &self,
        quota: PageQuota,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        save::save_pages(self, quota, pages, now).await
    }

    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError> {
        save::see(self, job, pages, now).await
    }

    async fn prune_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError> {
        prune::prune_pages(self, job, pages).await
    }

    async fn clear_pages(&self, limit: u32) -> Result<u64, StoreError> {
        prune::clear(self, limit).await
    }

    async fn list_pages(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError> {
        list::list(self, scope, filter, page).await
    }

    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError> {
        list::get_page(self, scope, id).await
    }
}

fn ids(pages: &[PageId]) -> Vec<Uuid> {
    pages.iter().map(|page| page.0).collect()
}
