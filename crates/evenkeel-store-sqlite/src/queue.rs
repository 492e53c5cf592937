//! Measures and reprioritizes the queue.

use async_trait::async_trait;
use evenkeel_core::aging::{Aging, Rise};
use evenkeel_core::limit::{LimitKey, LimitScope};
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{
    DepthWalk, QUEUE_GROUPS_MAX, QueueDepth, QueueDepths, QueueFront, QueueGroup, QueueStore,
    QueuedAttempt, Reprioritized, StoreError, from_code,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::Batch;
use crate::connection::{RunPrepared, RunSql, Session};
use crate::error::Answer;
use crate::rows::{FIRST_KEY, count, key_from, next_after, priority_from};

#[async_trait]
impl QueueStore for SqliteStore {
    async fn queue_depths(&self, limit: u32) -> Result<QueueDepths, StoreError> {
        // Uses the connections for users, so that the read of a long queue does not delay the
        // engine.
        self.readers.read(move |db| depths(db, limit)).await
    }

    async fn queue_front(&self, pools: &[String], rows: u32) -> Result<QueueFront, StoreError> {
        let pools = pools.to_vec();
        self.engine_readers.read(move |db| front(db, &pools, rows)).await
    }

    async fn reprioritize(
        &self,
        aging: Aging,
        after: Option<AttemptKey>,
        limit: u32,
    ) -> Result<Reprioritized, StoreError> {
        let step = move |db: &Connection| find_outdated(db, aging, after, limit);
        let (outdated, next) = self.engine_readers.read(step).await?;
        if outdated.is_empty() {
            return Ok(Reprioritized { next, ..Reprioritized::default() });
        }
        let write = move |db: &mut Session| reprioritize(db, aging, &outdated);
        let (changed, missed) = self.writer.write(Batch, limit as usize, write).await?;
        Ok(Reprioritized { changed, missed, next })
    }
}

/// Returns a checksum of the first attempts of each lane of these pools, by priority and by waiting
/// time.
fn front(connection: &Connection, pools: &[String], rows: u32) -> Answer<QueueFront> {
    let mut front = Vec::new();
    for sql in [sql!("queue_front_first"), sql!("queue_front_risen")] {
        let mut statement = connection.prepare_cached(sql)?;
        for (pool, lane) in pools.iter().flat_map(|pool| Lane::ALL.map(|lane| (pool, lane))) {
            front.extend(statement.rows(&[pool, &lane, &rows], key_from)?);
        }
    }
    Ok(front.into_iter().collect())
}

/// Returns the attempts whose stored aging is outdated, and the position at which the next step
/// starts.
fn find_outdated(
    connection: &Connection,
    aging: Aging,
    after: Option<AttemptKey>,
    limit: u32,
) -> Answer<(Vec<AttemptKey>, Option<AttemptKey>)> {
    let after = after.unwrap_or(FIRST_KEY);
    let seen = connection.rows(sql!("reprioritize_next"), &[&after, &limit], entry_from)?;
    let outdated = seen.iter().filter(|entry| entry.other_rise(&aging).is_some());
    let outdated = outdated.map(|entry| entry.key).collect();
    Ok((outdated, next_after(&seen, limit).map(|entry| entry.key)))
}

fn entry_from(row: &Row<'_>) -> Answer<QueuedAttempt> {
    let key = key_from(row)?;
    let priority =
        priority_from(row)?.ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
    let since = Timestamp::from_micros(row.get("since")?);
    Ok(QueuedAttempt { key, priority, since, rise: Rise(row.get("rise")?) })
}

fn reprioritize(connection: &Connection, aging: Aging, keys: &[AttemptKey]) -> Answer<(u64, u64)> {
    let mut find = connection.prepare_cached(sql!("reprioritize_find"))?;
    let mut change = connection.prepare_cached(sql!("reprioritize"))?;
    let (mut changed, mut missed) = (0, 0);
    for key in keys {
        let entry = find.maybe_row(&[key], entry_from)?;
        let Some(rise) = entry.and_then(|entry| entry.other_rise(&aging)) else {
            missed += 1;
            continue;
        };
        change.run(&[key, &rise])?;
        changed += 1;
    }
    Ok((changed, missed))
}

fn depths(connection: &Connection, limit: u32) -> Answer<QueueDepths> {
    let mut walk = DepthWalk::new(limit, groups(connection)?);
    let counted = count_first(connection, walk.first())?;
    walk.take(counted);
    if let Some(more) = walk.second() {
        let counted = count_first(connection, more)?;
        walk.take(counted);
    }
    if let Some(rest) = walk.rest() {
        let (found, walked) = count_rest(connection, rest)?;
        walk.take_rest(found, walked);
    }
    Ok(QueueDepths { parked: limited(connection, limit)?, ..walk.end() })
}

/// Lane, priority, number of attempts, and the earliest time at which one of them was queued.
type Counted = (Lane, u8, u64, Timestamp);

/// Counts the attempts in all lanes after this lane, except attempts in limit queues. Also returns
/// how many rows were read.
fn count_rest(
    connection: &Connection,
    ((pool, after), most): (QueueGroup, u32),
) -> Answer<(Vec<Counted>, u64)> {
    let mut statement = connection.prepare_cached(sql!("queue_depths_rest"))?;
    let mut rows = statement.select(&[&pool, &after, &most])?;
    let (mut found, mut walked) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let waiting = count(row, "waiting")?;
        walked += waiting;
        if !row.get::<_, bool>("is_limited")? {
            let oldest = Timestamp::from_micros(row.get("oldest")?);
            found.push((lane_of(row.get("lane")?)?, row.get("priority")?, waiting, oldest));
        }
    }
    Ok((found, walked))
}

fn lane_of(code: i16) -> Answer<Lane> {
    Ok(from_code(&Lane::ALL, code, "queue", "lane")?)
}

/// Counts the attempts in limit queues by the scope of the limit.
fn limited(connection: &Connection, limit: u32) -> Answer<[u64; LimitScope::ALL.len()]> {
    let mut statement = connection.prepare_cached(sql!("queue_depths_limited"))?;
    let mut rows = statement.select(&[&limit])?;
    let mut limited = [0; LimitScope::ALL.len()];
    while let Some(row) = rows.next()? {
        let scope: String = row.get("scope")?;
        if let Some(scope) = LimitScope::of_queue_pool_code(&scope) {
            limited[scope as usize] = count(row, "waiting")?;
        }
    }
    Ok(limited)
}

/// Returns the lanes of pools that have attempts, up to one lane more than are counted.
fn groups(connection: &Connection) -> Answer<Vec<QueueGroup>> {
    let mut statement = connection.prepare_cached(sql!("queue_depths_groups"))?;
    let mut groups: Vec<QueueGroup> = Vec::new();
    let mut at = (String::new(), -1_i16);
    while groups.len() <= QUEUE_GROUPS_MAX as usize {
        let next: Option<(String, i16)> =
            statement.maybe_row(&[&at.0, &at.1], |row| Ok((row.get("pool")?, row.get("lane")?)))?;
        let Some((pool, code)) = next else { break };
        let lane = lane_of(code)?;
        if LimitKey::of_queue_pool(&pool).is_some() {
            // Skips all limit queues in one step, because there may be many.
            at = (LimitKey::AFTER_QUEUE_POOLS.to_owned(), -1);
            continue;
        }
        at = (pool, code);
        groups.push((at.0.clone(), lane));
    }
    Ok(groups)
}

/// Counts the first attempts of each of the given lanes.
fn count_first(
    connection: &Connection,
    (groups, most): (Vec<QueueGroup>, u32),
) -> Answer<Vec<QueueDepth>> {
    let mut statement = connection.prepare_cached(sql!("queue_depths_count"))?;
    let mut depths = Vec::with_capacity(groups.len());
    for (pool, lane) in groups {
        let mut depth = QueueDepth::none(pool, lane);
        let mut rows = statement.select(&[&depth.pool, &lane, &most])?;
        while let Some(row) = rows.next()? {
            let oldest = Timestamp::from_micros(row.get("oldest")?);
            depth.add(row.get("priority")?, count(row, "waiting")?, oldest);
        }
        depths.push(depth);
    }
    Ok(depths)
}
