//! Would a server take it?

use evenkeel_core::TenantNo;
use serde_json::Value;

use super::Planned;
use crate::{ExecutorCheck, read_job};

/// Knows the executors that imported jobs use, and leaves their settings to the server: only it
/// knows what it allows.
struct AnySettings;

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
        vec!["crawl".into(), "shell".into()]
    }
}

/// The same, if its document can be read; otherwise it is put before a person, who sees all that
/// is wrong with it.
pub(super) fn checked(planned: Planned) -> Planned {
    let Some(document) = &planned.document else { return planned };
    let Err(faults) = read_job(document, TenantNo(0), &AnySettings) else { return planned };
    let why: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Planned {
        was: planned.was,
        notes: planned.notes,
        ..Planned::for_a_person(planned.line, planned.name, "refused", why.join("; "))
    }
}
