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

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{
    KeyColumns, column, count, get, key, key_columns, maybe_priority, position, time,
};

#[async_trait]
impl QueueStore for PostgresStore {
    async fn queue_depths(&self, limit: u32) -> Result<QueueDepths, StoreError> {
        // Queue depth is a metric, so its parts need not be from the same moment.
        run!(self.api, |connection| depths(connection, limit).await)
    }

    async fn queue_front(&self, pools: &[String], rows: u32) -> Result<QueueFront, StoreError> {
        let params = params![pools.to_vec(), i64::from(rows)];
        self.hot.row(sql!("queue_front"), params, |row| get(row, 0).map(QueueFront)).await
    }

    async fn reprioritize(
        &self,
        aging: Aging,
        after: Option<AttemptKey>,
        limit: u32,
    ) -> Result<Reprioritized, StoreError> {
        run!(self.api, |connection| reprioritize(connection, &aging, after, limit).await)
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
    // Without a cursor, the scan starts at a key that sorts before every attempt key.
    let (at, job, run, nth) = after.map_or((i64::MIN, 0, 0, 0), key_columns);
    let params: Params<'_> = &[&at, &job, &run, &nth, &i64::from(limit)];
    let rows = connection.rows(sql!("reprioritize_find"), params).await?;
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
    let rises = column(&outdated, |(_, rise)| *rise);
    let before = column(&outdated, |(attempt, _)| attempt.rise.0);
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let params: Params<'_> = &[job_no, scheduled_at, sequence, attempt, &before, &rises];
    let changed = connection.change(sql!("reprioritize"), params).await?;
    Ok(Reprioritized { changed, missed: (outdated.len() as u64).saturating_sub(changed), next })
}

fn read_queued(row: &Row) -> Tried<QueuedAttempt> {
    let key = key(row)?;
    let priority = maybe_priority(row, "priority")?
        .ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
    Ok(QueuedAttempt { key, priority, since: time(row, "since")?, rise: Rise(get(row, "rise")?) })
}

async fn depths(connection: &Connection, limit: u32) -> Tried<QueueDepths> {
    // One extra row shows whether there are more groups.
    let most = i64::from(QUEUE_GROUPS_MAX) + 1;
    let rows = connection.rows(sql!("queue_depths_groups"), &[&most]).await?;
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
    let params: Params<'_> = &[&pool, &(after as i16), &i64::from(most)];
    let (mut found, mut walked) = (Vec::new(), 0);
    for row in &connection.rows(sql!("queue_depths_rest"), params).await? {
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
    let mut parked = [0; LimitScope::ALL.len()];
    for row in connection.rows(sql!("queue_depths_limited"), &[&i64::from(limit)]).await? {
        if let Some(scope) = LimitScope::of_queue_pool_code(get(&row, 0)?) {
            parked[scope as usize] = count(&row, 1)?;
        }
    }
    Ok(parked)
}

/// Counts the attempts in the first rows of each of the given lanes of pools.
async fn count_first(
    connection: &Connection,
    (groups, most): (Vec<QueueGroup>, u32),
) -> Tried<Vec<QueueDepth>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let (pools, lanes): (Vec<&str>, Vec<i16>) =
        groups.iter().map(|(pool, lane)| (pool.as_str(), *lane as i16)).unzip();
    let params: Params<'_> = &[&pools, &lanes, &i64::from(most)];
    let rows = connection.rows(sql!("queue_depths_count"), params).await?;
    let mut depths = column(groups, |(pool, lane)| QueueDepth::none(pool, lane));
    for row in &rows {
        let nth = position(row, "nth")?;
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
