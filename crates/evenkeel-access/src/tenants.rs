//! Caches the numbers of tenants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::TenantNo;
use evenkeel_store::{Store, StoreError};

/// The tenant of tokens that name none.
pub const DEFAULT_TENANT: &str = "default";

/// Returns tenant numbers by name.
pub struct Tenants {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<String, TenantNo>>,
}

impl Tenants {
    /// When the cache has this many names, it is cleared.
    const MAX: usize = 10_000;

    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Returns the number of a tenant. A new name becomes a new tenant: only administrators issue
    /// tokens.
    pub async fn number(&self, name: &str) -> Result<TenantNo, StoreError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        if let Some(number) = known {
            return Ok(number);
        }
        let number = self.store.tenant(name).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MAX {
            known.clear();
        }
        known.insert(name.into(), number);
        Ok(number)
    }
}
