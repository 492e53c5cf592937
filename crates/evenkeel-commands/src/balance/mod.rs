//! Where load lies, and what people can do about it.

mod loads;

use std::sync::Arc;

use evenkeel_core::balance::BalanceSettings;
use evenkeel_store::Store;

pub use loads::Known;

/// Knows the load of every tenant, places new jobs by it, and moves jobs when people ask for it.
pub struct Balance {
    store: Arc<dyn Store>,
    settings: BalanceSettings,
}

impl Balance {
    /// Of the jobs of `store`.
    pub fn new(store: Arc<dyn Store>, settings: BalanceSettings) -> Arc<Self> {
        Arc::new(Self { store, settings })
    }

    /// How load is spread.
    pub fn settings(&self) -> &BalanceSettings {
        &self.settings
    }
}
