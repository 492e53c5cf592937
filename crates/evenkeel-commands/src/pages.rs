//! Questions about the pages that crawls keep.

use std::sync::Arc;

use evenkeel_core::PageId;
use evenkeel_store::{Page, PageFilter, PageHit, PageNo, PageRequest, Scope, Store, StoredPage};

use crate::CommandError;

/// What people ask about crawled pages.
#[derive(Clone)]
pub struct Pages {
    store: Arc<dyn Store>,
}

impl Pages {
    /// Questions about the pages of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The page with this id.
    pub async fn get(&self, scope: &Scope, id: PageId) -> Result<StoredPage, CommandError> {
        self.store.get_page(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// The scope's pages that the filter names. A job that it names must exist.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, CommandError> {
        if let Some(job) = filter.job
            && self.store.get(scope, job).await?.is_none()
        {
            return Err(CommandError::NotFound);
        }
        Ok(self.store.list_pages(scope, filter, page).await?)
    }
}
