//! Checks whether a server would accept an imported job.

use evenkeel_core::TenantNo;
use evenkeel_core::executor::ExecutorCatalog;

use super::Planned;
use crate::read_job;

/// Returns the plan of an entry if its job document is valid. Marks the entry for review, with all
/// faults, if its job document is invalid.
pub(super) fn checked(planned: Planned, catalog: ExecutorCatalog) -> Planned {
    let Some(document) = &planned.document else { return planned };
    let Err(faults) = read_job(document, TenantNo(0), &catalog) else {
        return planned;
    };
    let why: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Planned {
        was: planned.was,
        notes: planned.notes,
        ..Planned::for_review(planned.line, planned.name, "refused", why.join("; "))
    }
}
