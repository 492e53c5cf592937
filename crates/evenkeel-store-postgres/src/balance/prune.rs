//! Prunes balance scores, unused rebalance plans and old rebalances.

use evenkeel_core::Timestamp;
use evenkeel_store::{PARTS_PRUNED, REBALANCES_KEPT, StoreError};

use crate::PostgresStore;
use crate::rows::count;

pub(super) async fn prune_balance(
    store: &PostgresStore,
    scores_before: Timestamp,
    plans_before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let times = [scores_before, plans_before, rebalances_before].map(Timestamp::as_micros);
    store
        .api
        .run((times, i64::from(limit)), |connection, args| async move {
            let ([scores_before, plans_before, rebalances_before], limit) = &*args;
            let sql = sql!("prune_balance_scores");
            let scores = connection.change(sql, &[scores_before, limit]).await?;
            let sql = sql!("prune_balance_parts");
            let most = i64::from(PARTS_PRUNED);
            let parts = connection.change(sql, &[plans_before, rebalances_before, &most]).await?;
            if parts >= u64::from(PARTS_PRUNED) {
                return Ok(scores + limit.unsigned_abs());
            }
            let sql = sql!("prune_balance_plans");
            let plans = connection.change(sql, &[plans_before, limit]).await?;
            let sql = sql!("prune_balance_rebalances");
            let row = connection.row(sql, &[rebalances_before, limit]).await?;
            Ok(scores + plans + count(&row, 0)?)
        })
        .await
}
