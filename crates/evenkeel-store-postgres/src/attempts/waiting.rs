//! Pending attempts and their position in the queue.

use evenkeel_core::JobId;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::limit::{Limit, LimitKey};
use evenkeel_store::{
    ClaimWindow, Now, QueuePosition, Scope, StoreError, WaitingAttempt, WaitsFor,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{get, key, maybe_priority, maybe_time, micros, time};

/// Maximum number of pending attempts of a job that are returned.
const LISTED_MAX: i64 = 100;

pub(super) async fn waiting_of(
    store: &PostgresStore,
    scope: &Scope,
    job: JobId,
    ahead: Option<Aging>,
    now: Now,
) -> Result<Vec<WaitingAttempt>, StoreError> {
    let args = (job.0, scope.tenant.0, ahead, micros(now.literal()));
    store
        .api
        .run(args, |connection, args| async move {
            let (job, tenant, ahead, now) = &*args;
            let level = match ahead {
                Some(aging) => {
                    let sql = sql!("now");
                    let clock = connection.row(sql, &[now]).await?;
                    Some(aging.risen(Rise(0), time(&clock, 0)?).0)
                }
                None => None,
            };
            let sql = sql!("waiting_of");
            let rows = connection.rows(sql, &[job, tenant, &LISTED_MAX, &level]).await?;
            rows.iter().map(read_waiting).collect()
        })
        .await
}

fn read_waiting(row: &Row) -> Tried<WaitingAttempt> {
    let queue = get::<Option<&str>>(row, "pool")?.and_then(LimitKey::of_queue_pool);
    let waits_for = match (maybe_time(row, "due")?, queue) {
        (Some(due), _) => WaitsFor::Time(due),
        (None, Some(key)) => WaitsFor::Permit {
            since: time(row, "since")?,
            limit: Limit {
                key,
                most: get::<Option<i32>>(row, "limited_by_max")?.unwrap_or(0).cast_unsigned(),
            },
            running: maybe_count(row, "running")?,
        },
        (None, None) => WaitsFor::Worker {
            since: time(row, "since")?,
            ahead: maybe_count(row, "ahead")?,
            window: ClaimWindow {
                from: maybe_time(row, "open_from")?,
                until: maybe_time(row, "open_until")?,
            },
        },
    };
    Ok(WaitingAttempt { key: key(row)?, priority: maybe_priority(row, "own")?, waits_for })
}

fn maybe_count(row: &Row, column: &str) -> Tried<Option<u32>> {
    let counted: Option<i64> = get(row, column)?;
    Ok(counted.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

pub(super) async fn waiting(
    store: &PostgresStore,
    pools: &[String],
    limit: u32,
) -> Result<u32, StoreError> {
    store
        .hot
        .run((pools.to_vec(), i64::from(limit)), |connection, args| async move {
            let sql = sql!("waiting");
            let row = connection.row(sql, &[&args.0, &args.1]).await?;
            Ok(u32::try_from(get::<i64>(&row, 0)?).unwrap_or(u32::MAX))
        })
        .await
}

struct Ahead {
    pools: Vec<String>,
    position: QueuePosition,
    limit: i64,
    now: Option<i64>,
}

pub(super) async fn waiting_ahead(
    store: &PostgresStore,
    pools: &[String],
    position: QueuePosition,
    limit: u32,
    now: Now,
) -> Result<u32, StoreError> {
    let mut pools = pools.to_vec();
    pools.sort_unstable();
    pools.dedup();
    let args = Ahead { pools, position, limit: i64::from(limit), now: micros(now.literal()) };
    store
        .hot
        .run(args, |connection, args| async move {
            let Ahead { pools, position, limit, now } = &*args;
            let clock = connection.row(sql!("now"), &[now]).await?;
            let rise = position.aging.rise_of(position.rank, time(&clock, 0)?);
            let sql = sql!("waiting_ahead");
            let asked: [&(dyn ToSql + Sync); 5] =
                [pools, &(position.lane as i16), &position.rank.0, &rise.0, limit];
            let row = connection.row(sql, &asked).await?;
            Ok(u32::try_from(get::<i64>(&row, 0)?).unwrap_or(u32::MAX))
        })
        .await
}
