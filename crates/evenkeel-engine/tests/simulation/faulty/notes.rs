//! Notes, letters and pages on their way to the model.

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{AttemptKey, JobNo, NodeNo, PageId};
use evenkeel_store::*;

use super::{FaultyStore, Own};

#[async_trait]
impl ProgressStore for FaultyStore {
    async fn save_progress(
        &self,
        node: NodeNo,
        batch: Vec<ProgressNote>,
        now: Now,
    ) -> Result<Vec<bool>, StoreError> {
        through!(self, save_progress(node = Own(node), batch = Own(batch), now = Own(now)))
    }

    async fn find_running(&self, key: AttemptKey) -> Result<Option<Running>, StoreError> {
        through!(self, find_running(key = Own(key)))
    }

    async fn send_message(&self, node: NodeNo, letter: NodeMessage) -> Result<(), StoreError> {
        through!(self, send_message(node = Own(node), letter = Own(letter)))
    }

    async fn take_messages(
        &self,
        node: NodeNo,
        limit: u32,
    ) -> Result<Vec<NodeMessage>, StoreError> {
        through!(self, take_messages(node = Own(node), limit = Own(limit)))
    }
}

/// The simulation crawls nothing.
#[async_trait]
impl PageStore for FaultyStore {
    async fn known_pages(
        &self,
        job: JobNo,
        pages: &[PageId],
    ) -> Result<Vec<KnownPage>, StoreError> {
        self.inner.known_pages(job, pages).await
    }

    async fn save_pages(
        &self,
        shelf: PageQuota,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        self.inner.save_pages(shelf, pages, now).await
    }

    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError> {
        self.inner.see_pages(job, pages, now).await
    }

    async fn prune_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError> {
        self.inner.prune_pages(job, pages).await
    }

    async fn clear_pages(&self, limit: u32) -> Result<u64, StoreError> {
        through!(self, clear_pages(limit = Own(limit)))
    }

    async fn list_pages(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError> {
        self.inner.list_pages(scope, filter, page).await
    }

    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError> {
        self.inner.get_page(scope, id).await
    }
}
