//! Pages that crawls save, and the search in them.

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

use crate::SqliteStore;
use crate::connection::Urgency::Batch;
use crate::connection::resolve;
use crate::error::unavailable;

#[async_trait]
impl PageStore for SqliteStore {
    async fn known_pages(
        &self,
        job: JobNo,
        pages: &[PageId],
    ) -> Result<Vec<KnownPage>, StoreError> {
        let pages = pages.to_vec();
        self.readers.read(move |db| save::known(db, job, &pages)).await
    }

    async fn save_pages(
        &self,
        shelf: PageQuota,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        // The slow preparation runs before the request reaches the writer, because all requests
        // share the writer.
        let prepare = move || pages.into_iter().map(save::Prepared::new).collect::<Result<_, _>>();
        let pages: Vec<save::Prepared> =
            tokio::task::spawn_blocking(prepare).await.map_err(unavailable)??;
        let rows = pages.iter().map(save::Prepared::rows).sum();
        self.writer.write(Batch, rows, move |db| save::save(db, shelf, &pages, resolve(now))).await
    }

    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError> {
        let pages = pages.to_vec();
        self.writer
            .write(Batch, pages.len(), move |db| save::see(db, job, &pages, resolve(now)))
            .await
    }

    async fn prune_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError> {
        let (pages, rows) = (pages.to_vec(), pages.len() * prune::ROWS);
        self.writer.write(Batch, rows, move |db| prune::prune(db, job, &pages)).await
    }

    async fn clear_pages(&self, limit: u32) -> Result<u64, StoreError> {
        let mut left = limit;
        while left > 0 {
            // A reading connection checks first whether deleted jobs have pages, because usually
            // there are none and the writer is not needed.
            let jobs = self.engine_readers.read(move |db| prune::deleted_jobs(db, left)).await?;
            if jobs.is_empty() {
                break;
            }
            // If a round deletes fewer pages than the limit, it also deletes the `page_usage` rows
            // of these jobs.
            let rows = left as usize * prune::ROWS;
            left -= self.writer.write(Batch, rows, move |db| prune::clear(db, &jobs, left)).await?;
        }
        Ok(u64::from(limit - left))
    }

    async fn list_pages(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError> {
        let (tenant, filter) = (scope.tenant, filter.clone());
        self.readers.read(move |db| list::list(db, tenant, &filter, page)).await
    }

    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list::get(db, tenant, id)).await
    }
}
