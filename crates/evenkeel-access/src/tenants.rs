//! Tenants by name, without asking the store each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::TenantNo;
use evenkeel_store::{Store, StoreError};

/// The tenant of tokens that were made without one.
pub const DEFAULT_TENANT: &str = "default";

/// Knows tenants by name.
pub struct Tenants {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<String, TenantNo>>,
}

impl Tenants {
    /// So many names are remembered; beyond that it starts over, because a bound that is never
    /// reached needs no cleverness.
    const MAX: usize = 10_000;

    /// The tenants of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The tenant called `name`. Tokens are only made by administrators, so a new name is a new
    /// tenant.
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
