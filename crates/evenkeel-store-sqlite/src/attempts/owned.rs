//! Reads the attempts that a node runs, and which of these attempts the node must cancel.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{Cancellation, OwnedAttempt};
use rusqlite::{Connection, Row, params};

use crate::error::Answer;
use crate::rows::{collect, key_from, key_params, priority_from};

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
        let (scheduled_at, job_no, sequence, attempt) = key_params(*key);
        let mut rows = statement.query(params![scheduled_at, job_no, sequence, attempt, node.0])?;
        if let Some(row) = rows.next()? {
            found.push(owned_from(row)?);
        }
    }
    Ok(found)
}

/// Returns the attempts that a node runs. Long-running attempts are found by key, all other
/// attempts by a scan that starts at the node's low watermark.
pub(crate) fn all(connection: &Connection, node: NodeNo, limit: u32) -> Answer<Vec<OwnedAttempt>> {
    let mut found = Vec::new();
    for sql in [sql!("owned_long_attempts"), sql!("owned")] {
        let left = (limit as usize).saturating_sub(found.len());
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![node.0, left as i64])?;
        while let Some(row) = rows.next()? {
            found.push(owned_from(row)?);
        }
    }
    Ok(found)
}

/// Returns the attempts that the node must cancel, except those that have finished.
pub(crate) fn cancellations(connection: &Connection, node: NodeNo) -> Answer<Vec<Cancellation>> {
    let delete = sql!("cancellations_delete");
    connection.prepare_cached(delete)?.execute([node.0])?;
    let mut statement = connection.prepare_cached(sql!("cancellations"))?;
    collect(statement.query([node.0])?, |row| {
        Ok(Cancellation { key: key_from(row)?, superseded: row.get("superseded")? })
    })
}

/// Counts the queued attempts of these pools, up to `limit`.
pub(crate) fn waiting(connection: &Connection, pools: &[String], limit: u32) -> Answer<u32> {
    let mut statement = connection.prepare_cached(sql!("waiting"))?;
    let mut count = 0;
    for pool in pools {
        count += statement.query_row(params![pool, limit - count], |row| row.get::<_, u32>(0))?;
    }
    Ok(count)
}
