//! The interface through which commands check executors and their configurations.

use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorCatalog;
use serde_json::Value;

/// Lists the executors and checks their configurations, so that a job that could never run is
/// refused when it is created.
pub trait ExecutorCheck: Send + Sync {
    /// Checks the configuration of an executor in [`kinds`](Self::kinds). The error contains the
    /// name of a wrong field, such as `executor_config.url`, and what is wrong with the field.
    fn check(
        &self,
        tenant: TenantNo,
        kind: &str,
        config: &Value,
        payload: &Value,
    ) -> Result<(), (String, String)>;

    /// Returns the executors that are enabled on this server.
    fn kinds(&self) -> Vec<String>;

    /// Returns the declarations of all executors, including disabled executors. The whole
    /// configuration of an executor without a declaration is redacted.
    fn catalog(&self) -> ExecutorCatalog {
        ExecutorCatalog::EMPTY
    }
}

/// Accepts every configuration of the declared executors. Import plans use this check, because only
/// the server knows which configurations it allows.
impl ExecutorCheck for ExecutorCatalog {
    fn check(&self, _: TenantNo, _: &str, _: &Value, _: &Value) -> Result<(), (String, String)> {
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        self.iter().map(|executor| executor.kind.into()).collect()
    }

    fn catalog(&self) -> ExecutorCatalog {
        *self
    }
}
