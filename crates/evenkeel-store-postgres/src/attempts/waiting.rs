//! Pending attempts and their position in the queue.

use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::limit::{Limit, LimitKey};
use evenkeel_store::{ClaimWindow, QueuePosition, WaitingAttempt, WaitsFor};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{get, key, maybe_priority, maybe_time, time};

/// Maximum number of pending attempts of a job that are returned.
const LISTED_MAX: i64 = 100;

pub(super) async fn waiting_of(
    connection: &Connection,
    job: Uuid,
    tenant: i32,
    ahead: Option<Aging>,
    now: Option<i64>,
) -> Tried<Vec<WaitingAttempt>> {
    let level = match ahead {
        Some(aging) => {
            let clock = connection.row(sql!("now"), &[&now]).await?;
            Some(aging.risen(Rise(0), time(&clock, 0)?).0)
        }
        None => None,
    };
    let rows = connection.rows(sql!("waiting_of"), &[&job, &tenant, &LISTED_MAX, &level]).await?;
    rows.iter().map(read_waiting).collect()
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

pub(super) fn read_queued(row: &Row) -> Tried<u32> {
    Ok(u32::try_from(get::<i64>(row, 0)?).unwrap_or(u32::MAX))
}

pub(super) async fn waiting_ahead(
    connection: &Connection,
    pools: &[String],
    position: QueuePosition,
    limit: u32,
    now: Option<i64>,
) -> Tried<u32> {
    let clock = connection.row(sql!("now"), &[&now]).await?;
    let rise = position.aging.rise_of(position.rank, time(&clock, 0)?);
    let (lane, rank, limit) = (position.lane as i16, position.rank.0, i64::from(limit));
    let params: Params<'_> = &[&pools, &lane, &rank, &rise.0, &limit];
    read_queued(&connection.row(sql!("waiting_ahead"), params).await?)
}
