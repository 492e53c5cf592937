//! The interface through which commands check executors.

use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorCatalog;
use serde_json::Value;

/// Lists the executors and checks configurations, so that a job that could never run is refused
/// when it is created.
pub trait ExecutorCheck: Send + Sync {
    /// Checks a configuration of one of [`kinds`](Self::kinds). The error is the field, like
    /// `executor_config.url`, and what is wrong with it.
    fn check(
        &self,
        tenant: TenantNo,
        kind: &str,
        config: &Value,
        payload: &Value,
    ) -> Result<(), (String, String)>;

    /// Returns the executors that are enabled on this server.
    fn kinds(&self) -> Vec<String>;

    /// Returns the declarations of all executors, enabled or not. Without the declaration of its
    /// executor, the whole configuration of a job is redacted.
    fn catalog(&self) -> ExecutorCatalog {
        ExecutorCatalog::EMPTY
    }
}

/// Accepts every configuration of the declared executors. Import plans use it, because only the server
/// knows its own settings.
impl ExecutorCheck for ExecutorCatalog {
    fn check(
        &self,
        _tenant: TenantNo,
        _kind: &str,
        _config: &Value,
        _payload: &Value,
    ) -> Result<(), (String, String)> {
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        self.iter().map(|executor| executor.kind.into()).collect()
    }

    fn catalog(&self) -> ExecutorCatalog {
        *self
    }
}
