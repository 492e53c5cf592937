//! Reads the attempts that a node runs, and which of these attempts are cancelled.

use evenkeel_core::TenantNo;
use evenkeel_core::lease::Fence;
use evenkeel_store::{Cancellation, OwnedAttempt};
use tokio_postgres::Row;

use crate::error::Tried;
use crate::rows::{get, key, maybe_priority, time};

pub(super) fn read_cancellation(row: &Row) -> Tried<Cancellation> {
    Ok(Cancellation { key: key(row)?, superseded: get(row, "superseded")? })
}

/// Reads the columns of the SQL fragment `owned_columns`.
pub(crate) fn read_owned(row: &Row) -> Tried<OwnedAttempt> {
    Ok(OwnedAttempt {
        key: key(row)?,
        fence: Fence(get::<i32>(row, "fence")?.cast_unsigned()),
        tenant: TenantNo(get(row, "tenant_no")?),
        started_at: time(row, "started_at")?,
        crashes: get::<i16>(row, "crashes")?.max(0).cast_unsigned(),
        definition: get(row, "definition")?,
        priority: maybe_priority(row, "priority")?,
    })
}
