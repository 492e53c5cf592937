//! STUB.
use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId};
use evenkeel_store::{
    Now, Page, PageFilter, PageHit, PageNo, PageRequest, PageStore, Scope, Shelf, StoreError,
    StoredPage,
};

use super::ModelStore;

#[async_trait]
impl PageStore for ModelStore {
    async fn known_pages(&self, _: JobNo, _: &[PageId]) -> Result<Vec<KnownPage>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn keep_pages(
        &self,
        _: Shelf,
        _: Vec<PageContent>,
        _: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn see_pages(&self, _: JobNo, _: &[PageId], _: Now) -> Result<(), StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn forget_pages(&self, _: JobNo, _: &[PageId]) -> Result<u64, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn clear_pages(&self, _: u32) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn list_pages(
        &self,
        _: &Scope,
        _: &PageFilter,
        _: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
    async fn get_page(&self, _: &Scope, _: PageId) -> Result<Option<StoredPage>, StoreError> {
        Err(StoreError::Refused("stub".into()))
    }
}
