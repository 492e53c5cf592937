//! Reads crawled web pages.

use std::sync::Arc;

use evenkeel_core::PageId;
use evenkeel_store::{Page, PageFilter, PageHit, PageNo, PageRequest, Scope, Store, StoredPage};

use crate::runs::check_job;
use crate::{CommandError, Result};

#[derive(Clone)]
pub struct Pages {
    store: Arc<dyn Store>,
}

impl Pages {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub async fn get(&self, scope: &Scope, id: PageId) -> Result<StoredPage> {
        self.store.get_page(scope, id).await?.ok_or(CommandError::NotFound)
    }

    /// Lists the tenant's crawled pages that match the filter. If the filter names a job, that job
    /// must exist.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>> {
        check_job(&*self.store, scope, filter.job).await?;
        Ok(self.store.list_pages(scope, filter, page).await?)
    }
}
