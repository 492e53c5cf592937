//! Reads the attempts that a node runs, and which of these attempts the node must cancel.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{Cancellation, OwnedAttempt};
use rusqlite::{Connection, Row};

use crate::connection::{RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{key_from, priority_from};

/// Reads a row with the columns `owned_columns`.
pub(crate) fn owned_from(row: &Row<'_>) -> Answer<OwnedAttempt> {
    Ok(OwnedAttempt {
        key: key_from(row)?,
        fence: Fence(row.get("fence")?),
        tenant: TenantNo(row.get("tenant_no")?),
        started_at: Timestamp::from_micros(row.get("started_at")?),
        crashes: row.get("crashes")?,
        definition: row.get("definition")?,
        priority: priority_from(row)?,
    })
}

pub(crate) fn find(
    connection: &Connection,
    node: NodeNo,
    keys: &[AttemptKey],
) -> Answer<Vec<OwnedAttempt>> {
    let mut statement = connection.prepare_cached(sql!("find_owned"))?;
    let mut found = Vec::new();
    for key in keys {
        found.extend(statement.maybe_row(&[key, &node], owned_from)?);
    }
    Ok(found)
}

/// Returns the attempts that a node runs. Long-running attempts are found by key, all other
/// attempts by a scan that starts at the lower bound of their scheduled times.
pub(crate) fn all(connection: &Connection, node: NodeNo, limit: u32) -> Answer<Vec<OwnedAttempt>> {
    let mut found = Vec::new();
    for sql in [sql!("owned_long_attempts"), sql!("owned")] {
        let left = (limit as usize).saturating_sub(found.len());
        found.extend(connection.rows(sql, &[&node, &left], owned_from)?);
    }
    Ok(found)
}

/// Returns the attempts that the node must cancel, except those that have finished.
pub(crate) fn cancellations(connection: &Connection, node: NodeNo) -> Answer<Vec<Cancellation>> {
    connection.run(sql!("cancellations_delete"), &[&node])?;
    connection.rows(sql!("cancellations"), &[&node], |row| {
        Ok(Cancellation { key: key_from(row)?, superseded: row.get("superseded")? })
    })
}

/// Counts the queued attempts of these pools, up to `limit`.
pub(crate) fn waiting(connection: &Connection, pools: &[String], limit: u32) -> Answer<u32> {
    let mut statement = connection.prepare_cached(sql!("waiting"))?;
    let mut count = 0;
    for pool in pools {
        count += statement.value::<u32>(&[pool, &(limit - count)])?;
    }
    Ok(count)
}
