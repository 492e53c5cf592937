//! Waiting rooms of limits, and the places that nobody has any more.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{LimitKey, who_fits};
use evenkeel_core::{RunKey, Timestamp};
use evenkeel_store::{LimitPlace, LimitStore, Now, Rooms, StoreError, UNPARKED_MAX, Unparked};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::SqliteStore;
use crate::clock::resolve;
use crate::error::Answer;
use crate::queue::Urgency::Batch;
use crate::rows::{key_from, key_params};
use crate::runs::choose::{Candidate, choose_from};

#[async_trait]
impl LimitStore for SqliteStore {
    async fn unpark(
        &self,
        ended: &[LimitPlace],
        aging: Aging,
        now: Now,
    ) -> Result<u64, StoreError> {
        let ended = ended.to_vec();
        self.writer
            .write(Batch, ended.len(), move |session| {
                unpark(session.connection(), &ended, aging, resolve(now))
            })
            .await
    }

    async fn unpark_all(&self, rooms: Rooms, now: Now) -> Result<Unparked, StoreError> {
        self.writer
            .write(Batch, rooms.limit as usize, move |session| {
                unpark_all(session.connection(), rooms, resolve(now))
            })
            .await
    }

    async fn forget_places(
        &self,
        after: Option<LimitPlace>,
        limit: u32,
    ) -> Result<Option<LimitPlace>, StoreError> {
        self.writer
            .write(Batch, limit as usize, move |session| {
                forget_places(session.connection(), after, limit)
            })
            .await
    }
}

fn unpark(
    connection: &Connection,
    ended: &[LimitPlace],
    aging: Aging,
    now: Timestamp,
) -> Answer<u64> {
    let mut counts: BTreeMap<LimitKey, usize> = BTreeMap::new();
    for place in ended {
        vacate(connection, *place)?;
        *counts.entry(place.limit).or_default() += 1;
    }
    let mut moved = 0;
    for (limit, count) in counts {
        for candidate in choose_from(connection, limit.room(), count, aging, now)? {
            moved += send_home(connection, candidate.key)?;
        }
    }
    Ok(moved)
}

fn unpark_all(connection: &Connection, rooms: Rooms, now: Timestamp) -> Answer<Unparked> {
    let mut at = rooms.after.map_or_else(|| "~".to_owned(), LimitKey::room);
    let mut unparked = Unparked::default();
    for _ in 0..rooms.limit {
        let next = connection
            .prepare_cached(include_str!("../queries/unpark_rooms.sql"))?
            .query_row([&at], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((pool, lowest, highest)): Option<(String, u32, u32)> = next else {
            return Ok(Unparked { next: None, ..unparked });
        };
        let limit = LimitKey::of_room(&pool)
            .ok_or_else(|| StoreError::corrupt("ready", "pool", "no waiting room"))?;
        let running: u32 = connection
            .prepare_cached(include_str!("../queries/unpark_running.sql"))?
            .query_row([limit.as_bytes()], |row| row.get(0))?;
        let free = highest.saturating_sub(running);
        // Where they do not agree on the limit, those that fit may be further behind.
        let count = if lowest == highest || free == 0 { free } else { UNPARKED_MAX };
        let count = count.min(UNPARKED_MAX) as usize;
        let first = choose_from(connection, pool.clone(), count, rooms.aging, now)?;
        let limits = first.iter().map(Candidate::parked_under);
        let fits: Vec<bool> = who_fits(limits, running).collect();
        for (candidate, fits) in first.iter().zip(fits) {
            if fits {
                unparked.moved += send_home(connection, candidate.key)?;
            }
        }
        at = pool;
        unparked.next = Some(limit);
    }
    Ok(unparked)
}

fn send_home(connection: &Connection, run: RunKey) -> Answer<u64> {
    let moved = connection
        .prepare_cached(include_str!("../queries/unpark.sql"))?
        .execute(key_params(run))?;
    Ok(moved as u64)
}

/// Forgets the place of an attempt, if that has ended.
fn vacate(connection: &Connection, place: LimitPlace) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(place.run);
    connection.prepare_cached(include_str!("../queries/unpark_vacate.sql"))?.execute(params![
        place.limit.as_bytes(),
        scheduled_at,
        job_no,
        sequence,
        attempt
    ])?;
    Ok(())
}

fn forget_places(
    connection: &Connection,
    after: Option<LimitPlace>,
    limit: u32,
) -> Answer<Option<LimitPlace>> {
    // Nothing comes before an empty key.
    let from = after.map_or_else(Vec::new, |place| place.limit.as_bytes().to_vec());
    let (scheduled_at, job_no, sequence, attempt) =
        after.map_or((0, 0, 0, 0), |place| key_params(place.run));
    let mut statement =
        connection.prepare_cached(include_str!("../queries/forget_places_look.sql"))?;
    let mut rows =
        statement.query(params![from, scheduled_at, job_no, sequence, attempt, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes: Vec<u8> = row.get("key")?;
        let limit = LimitKey::from_bytes(&bytes)
            .ok_or_else(|| StoreError::corrupt("place", "key", "not a limit"))?;
        found.push(LimitPlace { limit, run: key_from(row)? });
    }
    for place in &found {
        vacate(connection, *place)?;
    }
    Ok(found.last().copied().filter(|_| found.len() == limit as usize))
}
