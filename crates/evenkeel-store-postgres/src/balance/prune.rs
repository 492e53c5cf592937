//! Prunes balance scores, unused rebalance plans and old rebalances.

use evenkeel_core::Timestamp;
use evenkeel_store::{PARTS_PRUNED, REBALANCES_KEPT};

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::count;

pub(super) async fn prune_balance(
    connection: &Connection,
    scores_before: Timestamp,
    plans_before: Timestamp,
    limit: u32,
) -> Tried<u64> {
    let rebalances_before = plans_before.saturating_sub(REBALANCES_KEPT);
    let [scores_before, plans_before, rebalances_before] =
        [scores_before, plans_before, rebalances_before].map(Timestamp::as_micros);
    let (limit, most) = (i64::from(limit), i64::from(PARTS_PRUNED));
    let scores = connection.change(sql!("prune_balance_scores"), &[&scores_before, &limit]).await?;
    let params: Params<'_> = &[&plans_before, &rebalances_before, &most];
    let parts = connection.change(sql!("prune_balance_parts"), params).await?;
    if parts >= u64::from(PARTS_PRUNED) {
        return Ok(scores + limit.unsigned_abs());
    }
    let plans = connection.change(sql!("prune_balance_plans"), &[&plans_before, &limit]).await?;
    let params: Params<'_> = &[&rebalances_before, &limit];
    let row = connection.row(sql!("prune_balance_rebalances"), params).await?;
    Ok(scores + plans + count(&row, 0)?)
}
