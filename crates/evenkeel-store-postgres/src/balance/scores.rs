//! How even load was, hour by hour, and what is forgotten of the past.

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{PARTS_FORGOTTEN, REBALANCES_KEPT, SavedScore, Scope, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{count, get, time};
use crate::error::Tried;

pub(super) async fn save_score(
    store: &PostgresStore,
    tenant: TenantNo,
    score: SavedScore,
) -> Result<bool, StoreError> {
    store
        .api
        .run((tenant.0, score), |connection, args| async move {
            let (tenant, score) = &*args;
            let SavedScore { hour, score, next_score, cost_score, peak, mean, jobs } = score;
            let (hour, jobs) = (hour.as_micros(), i64::try_from(*jobs).unwrap_or(i64::MAX));
            let sql = sql!("save_score");
            let kept = connection
                .change(sql, &[tenant, &hour, score, next_score, cost_score, peak, mean, &jobs])
                .await?;
            Ok(kept == 1)
        })
        .await
}

pub(super) async fn scores(
    store: &PostgresStore,
    scope: &Scope,
    from: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<SavedScore>, StoreError> {
    let args = (scope.tenant.0, from.as_micros(), until.as_micros(), i64::from(limit));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, from, until, limit) = &*args;
            let sql = sql!("scores");
            connection
                .rows(sql, &[tenant, from, until, limit])
                .await?
                .iter()
                .map(read_score)
                .collect()
        })
        .await
}

fn read_score(row: &Row) -> Tried<SavedScore> {
    Ok(SavedScore {
        hour: time(row, 0)?,
        score: get(row, 1)?,
        next_score: get(row, 2)?,
        cost_score: get(row, 3)?,
        peak: get(row, 4)?,
        mean: get(row, 5)?,
        jobs: count(row, 6)?,
    })
}

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
            let most = i64::from(PARTS_FORGOTTEN);
            let parts = connection.change(sql, &[plans_before, rebalances_before, &most]).await?;
            if parts >= u64::from(PARTS_FORGOTTEN) {
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
