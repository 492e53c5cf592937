//! Prunes rebalance plans, rebalances and balance scores in bounded steps.

use evenkeel_core::Timestamp;
use evenkeel_store::{PARTS_PRUNED, REBALANCES_KEPT};
use rusqlite::{Connection, params};

use crate::error::Answer;

/// Returns true if there are plans, rebalances or balance scores to prune.
pub(super) fn has_old(
    db: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
) -> Answer<bool> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let before = params![scores_before.as_micros(), rebalances_before.as_micros()];
    let has_old: bool =
        db.prepare_cached(sql!("prune_balance_find"))?.query_row(before, |row| row.get(0))?;
    if has_old {
        return Ok(true);
    }
    let sql = sql!("prune_balance_unused_find");
    Ok(db.prepare_cached(sql)?.query_row([plans_before.as_micros()], |row| row.get(0))?)
}

/// Deletes the parts of rebalances first, and a rebalance once it has no parts.
pub(super) fn prune(
    connection: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
    limit: u32,
) -> Answer<u64> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let times = (plans_before.as_micros(), rebalances_before.as_micros());
    let parts = connection
        .prepare_cached(sql!("prune_balance_parts_some"))?
        .execute(params![times.0, times.1, PARTS_PRUNED])?;
    if parts >= PARTS_PRUNED as usize {
        return Ok(u64::from(limit));
    }
    let plans = connection
        .prepare_cached(sql!("prune_balance_unused"))?
        .execute(params![times.0, limit])?;
    let scores = connection
        .prepare_cached(sql!("prune_balance_scores"))?
        .execute(params![scores_before.as_micros(), limit])?;
    let rebalances: Vec<i64> = connection
        .prepare_cached(sql!("prune_balance_plans"))?
        .query_map(params![times.1, limit], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut parts = connection.prepare_cached(sql!("prune_balance_parts"))?;
    for rebalance in &rebalances {
        parts.execute([rebalance])?;
    }
    Ok((plans + scores + rebalances.len()) as u64)
}
