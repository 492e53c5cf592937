//! Claim windows limit when a queued attempt may be claimed.

use std::collections::BTreeMap;

use evenkeel_core::{AttemptKey, Shard};
use evenkeel_store::{ClaimWindow, ClosedAttempt, Now, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{KeyColumns, get, key, micros, shards, span};

pub(super) async fn find_closed_windows(
    store: &PostgresStore,
    of: &[Shard],
    limit: u32,
    now: Now,
) -> Result<Vec<ClosedAttempt>, StoreError> {
    let args = (micros(now.literal()), shards(of), i64::from(limit));
    store
        .hot
        .run(args, |connection, args| async move {
            let (now, shards, limit) = &*args;
            let sql = sql!("find_closed_windows");
            connection.rows(sql, &[now, shards, limit]).await?.iter().map(read_closed).collect()
        })
        .await
}

fn read_closed(row: &Row) -> Tried<ClosedAttempt> {
    Ok(ClosedAttempt {
        key: key(row)?,
        average_good_duration: get::<Option<i64>>(row, "average_us")?.map(span),
        definition: get(row, "definition")?,
    })
}

pub(super) async fn set_claim_windows(
    store: &PostgresStore,
    batch: &[(AttemptKey, ClaimWindow)],
) -> Result<(), StoreError> {
    // Claim windows are sorted in lock order, so that two calls cannot deadlock. If an attempt has
    // two claim windows, the last one counts.
    let sorted: BTreeMap<_, _> =
        batch.iter().map(|(key, window)| ((key.job_no, *key), *window)).collect();
    let keys: KeyColumns = sorted.keys().map(|(_, key)| *key).collect();
    let from: Vec<Option<i64>> = sorted.values().map(|window| micros(window.from)).collect();
    let until: Vec<Option<i64>> = sorted.values().map(|window| micros(window.until)).collect();
    store
        .hot
        .run((keys, from, until), |connection, args| async move {
            let (KeyColumns { job_no, scheduled_at, sequence, attempt }, from, until) = &*args;
            let sql = sql!("set_claim_windows");
            connection.change(sql, &[job_no, scheduled_at, sequence, attempt, from, until]).await?;
            Ok(())
        })
        .await
}
