//! Queue depths, and reprioritizing the queue.

use async_trait::async_trait;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::limit::LimitScope;
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{
    DepthWalk, QUEUE_GROUPS_MAX, QueueDepth, QueueDepths, QueueFront, QueueGroup, QueueStore,
    QueuedAttempt, Reprioritized, StoreError, from_code,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, count, get, key, maybe_priority, time};

#[async_trait]
impl QueueStore for PostgresStore {
    async fn queue_depths(&self, limit: u32) -> Result<QueueDepths, StoreError> {
        // Queue depth is a metric, so its parts need not be from the same moment.
        self.api
            .run(limit, |connection, limit| async move { depths(&connection, *limit).await })
            .await
    }

    async fn queue_front(&self, pools: &[String], rows: u32) -> Result<QueueFront, StoreError> {
        self.hot
            .run((pools.to_vec(), i64::from(rows)), |connection, args| async move {
                let (pools, rows) = &*args;
                let sql = sql!("queue_front");
                Ok(QueueFront(get(&connection.row(sql, &[pools, rows]).await?, 0)?))
            })
            .await
    }

    async fn reprioritize(
        &self,
        aging: Aging,
        after: Option<AttemptKey>,
        limit: u32,
    ) -> Result<Reprioritized, StoreError> {
        self.api
            .run((aging, after, limit), |connection, args| async move {
                let (aging, after, limit) = &*args;
                reprioritize(&connection, aging, *after, *limit).await
            })
            .await
    }
}

/// Recomputes the stored aging of queued attempts. Usually no attempt changes, so no row is locked.
/// Rows that other transactions have locked are skipped, because these attempts may be about to
/// leave the queue.
async fn reprioritize(
    connection: &Connection,
    aging: &Aging,
    after: Option<AttemptKey>,
    limit: u32,
) -> Tried<Reprioritized> {
    // An empty key sorts before every attempt key.
    let after: KeyColumns = after.into_iter().collect();
    let from = (
        after.scheduled_at.first().copied().unwrap_or(i64::MIN),
        after.job_no.first().copied().unwrap_or_default(),
        after.sequence.first().copied().unwrap_or_default(),
        after.attempt.first().copied().unwrap_or_default(),
    );
    let sql = sql!("reprioritize_find");
    let asked: [&(dyn ToSql + Sync); 5] = [&from.0, &from.1, &from.2, &from.3, &i64::from(limit)];
    let rows = connection.rows(sql, &asked).await?;
    let queued = rows.iter().map(read_queued).collect::<Tried<Vec<QueuedAttempt>>>()?;
    let is_full = queued.len() == limit as usize;
    let next = queued.last().map(|attempt| attempt.key).filter(|_| is_full);
    let outdated: Vec<(QueuedAttempt, i64)> = queued
        .into_iter()
        .filter_map(|attempt| Some((attempt, attempt.other_rise(aging)?.0)))
        .collect();
    if outdated.is_empty() {
        return Ok(Reprioritized { next, ..Reprioritized::default() });
    }
    let keys: KeyColumns = outdated.iter().map(|(attempt, _)| attempt.key).collect();
    let rises: Vec<i64> = outdated.iter().map(|(_, rise)| *rise).collect();
    let before: Vec<i64> = outdated.iter().map(|(attempt, _)| attempt.rise.0).collect();
    let sql = sql!("reprioritize");
    let asked: [&(dyn ToSql + Sync); 6] =
        [&keys.job_no, &keys.scheduled_at, &keys.sequence, &keys.attempt, &before, &rises];
    let changed = connection.change(sql, &asked).await?;
    Ok(Reprioritized { changed, missed: (outdated.len() as u64).saturating_sub(changed), next })
}

fn read_queued(row: &Row) -> Tried<QueuedAttempt> {
    let key = key(row)?;
    let priority = maybe_priority(row, "priority")?
        .ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
    Ok(QueuedAttempt { key, priority, since: time(row, "since")?, rise: Rise(get(row, "rise")?) })
}

async fn depths(connection: &Connection, limit: u32) -> Tried<QueueDepths> {
    let sql = sql!("queue_depths_groups");
    // One extra row shows whether there are more groups.
    let most = i64::from(QUEUE_GROUPS_MAX) + 1;
    let rows = connection.rows(sql, &[&most]).await?;
    let groups = rows.iter().map(|row| Ok((get(row, 0)?, lane(get(row, 1)?)?)));
    let mut walk = DepthWalk::new(limit, groups.collect::<Tried<Vec<QueueGroup>>>()?);
    let counted = count_first(connection, walk.first()).await?;
    walk.take(counted);
    if let Some(more) = walk.second() {
        let counted = count_first(connection, more).await?;
        walk.take(counted);
    }
    if let Some(rest) = walk.rest() {
        let (found, walked) = count_rest(connection, rest).await?;
        walk.take_rest(found, walked);
    }
    Ok(QueueDepths { parked: parked(connection, limit).await?, ..walk.end() })
}

/// Lane, priority, number of attempts, and the time at which the oldest of them was queued.
type Counted = (Lane, u8, u64, Timestamp);

/// Counts the attempts in all lanes after this lane of a pool, except attempts in limit queues.
/// Also returns how many rows were read.
async fn count_rest(
    connection: &Connection,
    ((pool, after), most): (QueueGroup, u32),
) -> Tried<(Vec<Counted>, u64)> {
    let sql = sql!("queue_depths_rest");
    let rows = connection.rows(sql, &[&pool, &(after as i16), &i64::from(most)]).await?;
    let (mut found, mut walked) = (Vec::new(), 0);
    for row in &rows {
        let waiting = count(row, "waiting")?;
        walked += waiting;
        if !get::<bool>(row, "is_limited")? {
            let priority = u8::try_from(get::<i16>(row, "priority")?).unwrap_or(u8::MAX);
            found.push((lane(get(row, "lane")?)?, priority, waiting, time(row, "oldest")?));
        }
    }
    Ok((found, walked))
}

/// Counts attempts in limit queues by the scope of the limit.
async fn parked(connection: &Connection, limit: u32) -> Tried<[u64; LimitScope::ALL.len()]> {
    let sql = sql!("queue_depths_limited");
    let mut parked = [0; LimitScope::ALL.len()];
    for row in connection.rows(sql, &[&i64::from(limit)]).await? {
        if let Some(scope) = LimitScope::of_queue_pool_code(get(&row, 0)?) {
            parked[scope as usize] = count(&row, 1)?;
        }
    }
    Ok(parked)
}

/// Counts the first rows of each of the given lanes of pools.
async fn count_first(
    connection: &Connection,
    (groups, most): (Vec<QueueGroup>, u32),
) -> Tried<Vec<QueueDepth>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let pools: Vec<&str> = groups.iter().map(|(pool, _)| pool.as_str()).collect();
    let lanes: Vec<i16> = groups.iter().map(|(_, lane)| *lane as i16).collect();
    let sql = sql!("queue_depths_count");
    let rows = connection.rows(sql, &[&pools, &lanes, &i64::from(most)]).await?;
    let none = |(pool, lane)| QueueDepth::none(pool, lane);
    let mut depths: Vec<QueueDepth> = groups.into_iter().map(none).collect();
    for row in &rows {
        let nth = usize::try_from(get::<i64>(row, "nth")? - 1).unwrap_or(usize::MAX);
        let priority = u8::try_from(get::<i16>(row, "priority")?)
            .map_err(|error| StoreError::corrupt("ready", "priority", error))?;
        if let Some(depth) = depths.get_mut(nth) {
            depth.add(priority, count(row, "waiting")?, time(row, "oldest")?);
        }
    }
    Ok(depths)
}

fn lane(code: i16) -> Tried<Lane> {
    Ok(from_code(&Lane::ALL, code, "ready", "lane")?)
}
