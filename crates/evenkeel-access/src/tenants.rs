//! Caches the numbers of tenants by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::TenantNo;
use evenkeel_store::{Store, StoreError};

/// Name of the tenant for tokens that name no tenant.
pub const DEFAULT_TENANT: &str = "default";

/// Looks up tenant numbers by name, with a cache.
pub struct Tenants {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<String, TenantNo>>,
}

impl Tenants {
    /// Maximum number of cached tenant names; a full cache is cleared.
    const MAX: usize = 10_000;

    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Returns the number of the tenant with this name. An unknown name becomes a new tenant.
    /// Creating tenants by name is safe, because only administrators issue tokens.
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
