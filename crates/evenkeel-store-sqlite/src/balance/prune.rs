//! Prunes rebalance plans, rebalances and balance scores in bounded steps.

use evenkeel_core::Timestamp;
use evenkeel_store::{PARTS_PRUNED, REBALANCES_KEPT};
use rusqlite::Connection;

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;

/// Returns true if there are plans, rebalances or balance scores to prune.
pub(super) fn has_old(
    db: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
) -> Answer<bool> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let before: Params<'_> = &[&scores_before, &rebalances_before];
    Ok(db.value(sql!("prune_balance_find"), before)?
        || db.value(sql!("prune_balance_unused_find"), &[&plans_before])?)
}

/// Deletes the parts of rebalances first, and a rebalance once it has no parts.
pub(super) fn prune(
    connection: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
    limit: u32,
) -> Answer<u64> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let old: Params<'_> = &[&plans_before, &rebalances_before, &PARTS_PRUNED];
    let parts = connection.change(sql!("prune_balance_parts_some"), old)?;
    if parts >= u64::from(PARTS_PRUNED) {
        return Ok(u64::from(limit));
    }
    let plans = connection.change(sql!("prune_balance_unused"), &[&plans_before, &limit])?;
    let scores = connection.change(sql!("prune_balance_scores"), &[&scores_before, &limit])?;
    let old: Params<'_> = &[&rebalances_before, &limit];
    let rebalances: Vec<i64> =
        connection.rows(sql!("prune_balance_plans"), old, |row| Ok(row.get(0)?))?;
    let mut parts = connection.prepare_cached(sql!("prune_balance_parts"))?;
    for rebalance in &rebalances {
        parts.run(&[rebalance])?;
    }
    Ok(plans + scores + rebalances.len() as u64)
}
