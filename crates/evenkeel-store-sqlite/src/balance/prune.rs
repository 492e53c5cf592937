//! What is forgotten of plans and rebalances, a little at a time.

use evenkeel_core::Timestamp;
use evenkeel_store::{PARTS_FORGOTTEN, REBALANCES_KEPT};
use rusqlite::{Connection, params};

use super::rebalances;
use crate::error::Answer;

/// Is there anything that can be forgotten?
pub(super) fn is_anything_old(
    db: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
) -> Answer<bool> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    if rebalances::is_anything_old(db, scores_before, rebalances_before)? {
        return Ok(true);
    }
    let sql = sql!("prune_balance_unused_find");
    Ok(db.prepare_cached(sql)?.query_row([plans_before.as_micros()], |row| row.get(0))?)
}

/// Forgets batches first, and the rest once there are none left.
pub(super) fn prune(
    connection: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
    limit: u32,
) -> Answer<u64> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let times = (plans_before.as_micros(), rebalances_before.as_micros());
    let parts = connection.prepare_cached(sql!("prune_balance_parts_some"))?.execute(params![
        times.0,
        times.1,
        PARTS_FORGOTTEN
    ])?;
    if parts >= PARTS_FORGOTTEN as usize {
        return Ok(u64::from(limit));
    }
    let plans = connection
        .prepare_cached(sql!("prune_balance_unused"))?
        .execute(params![times.0, limit])?;
    let rest = rebalances::forget(connection, scores_before, rebalances_before, limit)?;
    Ok(plans as u64 + rest)
}
