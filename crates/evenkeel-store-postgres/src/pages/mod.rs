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

use self::list::stored_page;
use self::save::read_known;
use crate::PostgresStore;
use crate::rows::micros;

#[async_trait]
impl PageStore for PostgresStore {
    async fn known_pages(
        &self,
        job: JobNo,
        pages: &[PageId],
    ) -> Result<Vec<KnownPage>, StoreError> {
        self.api.rows(sql!("known_pages"), params![ids(pages), job.0], read_known).await
    }

    async fn save_pages(
        &self,
        quota: PageQuota,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        let (pages, now) = (save::prepare(quota, pages).await?, micros(now.literal()));
        transaction!(self.api, pages, |connection, pages| {
            save::save_pages(connection, quota, pages, now).await
        })
    }

    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError> {
        let params = params![ids(pages), job.0, micros(now.literal())];
        self.api.change(sql!("see_pages"), params).await?;
        Ok(())
    }

    async fn prune_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError> {
        transaction!(self.api, ids(pages), |connection, pages| {
            prune::prune_pages(connection, job.0, pages).await
        })
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
        let tenant = scope.tenant;
        run!(self.api, filter.clone(), |connection, filter| {
            list::list(connection, tenant, filter, page).await
        })
    }

    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError> {
        self.api.maybe_row(sql!("get_page"), params![id.0, scope.tenant.0], stored_page).await
    }
}

fn ids(pages: &[PageId]) -> Vec<Uuid> {
    pages.iter().map(|page| page.0).collect()
}
