//! Checks whether a server would accept an imported job.

use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorCatalog;
use serde_json::Value;

use super::Planned;
use crate::{ExecutorCheck, read_job};

/// Accepts every configuration of every executor: only the server knows what it allows.
struct AnySettings(ExecutorCatalog);

impl ExecutorCheck for AnySettings {
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
        self.0.iter().map(|executor| executor.kind.into()).collect()
    }

    fn catalog(&self) -> ExecutorCatalog {
        self.0
    }
}

/// Returns the plan if its document is valid. Otherwise marks it for review with all faults.
pub(super) fn checked(planned: Planned, catalog: ExecutorCatalog) -> Planned {
    let Some(document) = &planned.document else { return planned };
    let Err(faults) = read_job(document, TenantNo(0), &AnySettings(catalog)) else {
        return planned;
    };
    let why: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Planned {
        was: planned.was,
        notes: planned.notes,
        ..Planned::for_review(planned.line, planned.name, "refused", why.join("; "))
    }
}
