//! What commands know of executors.

use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorCatalog;
use serde_json::Value;

/// Says which executors there are and whether a configuration is good, so that a job that could
/// never run is refused when it is created.
pub trait ExecutorCheck: Send + Sync {
    /// Refuses a bad configuration with the field to blame, like `executor_config.url`, and what
    /// is wrong with it. It is only asked about the kinds it names.
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
