//! Waiting rooms of limits, and the places that nobody has any more.

mod rooms;

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_core::limit::{LimitKey, LimitScope, Own};
use evenkeel_store::{
    LimitStore, LimitTerms, Now, Permit, RELEASED_MAX, ReleaseStep, Released, StoreError,
};
use rusqlite::{Connection, params};

use crate::SqliteStore;
use crate::clock::resolve;
use crate::error::Answer;
use crate::queue::Urgency::Batch;
use crate::rows::{key_from, key_params};

pub(crate) use rooms::running_under;

/// Whoever ends looks past so many in a room that are held up by another limit as well,
const HELD_UP: u32 = 50;
/// and then so often at more. The next that looks into all rooms does the rest.
const LOOKS: usize = 3;

#[async_trait]
impl LimitStore for SqliteStore {
    async fn release_limited(
        &self,
        ended: &[Permit],
        terms: &LimitTerms,
        now: Now,
    ) -> Result<u64, StoreError> {
        let (ended, terms) = (ended.to_vec(), terms.clone());
        self.writer
            .write(Batch, ended.len(), move |session| {
                release_limited(session.connection(), &ended, &terms, resolve(now))
            })
            .await
    }

    /// Mostly nobody leaves, and the writer has nothing to do with it.
    async fn release_all_limited(
        &self,
        rooms: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        let look = move |db: &Connection| rooms::look_around(db, &rooms, resolve(now));
        let (moves, unparked) = self.engine_readers.read(look).await?;
        if moves.is_empty() {
            return Ok(unparked);
        }
        let moved = self
            .writer
            .write(Batch, moves.len(), move |session| rooms::make(session.connection(), &moves))
            .await?;
        Ok(Released { moved, ..unparked })
    }

    /// Mostly there are none.
    async fn prune_permits(
        &self,
        after: Option<Permit>,
        limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        let look = move |db: &Connection| ended_places(db, after, limit);
        let (ended, next) = self.engine_readers.read(look).await?;
        if !ended.is_empty() {
            self.writer
                .write(Batch, limit as usize, move |session| {
                    ended.iter().try_for_each(|place| vacate(session.connection(), *place))
                })
                .await?;
        }
        Ok(next)
    }
}

/// As many leave the rooms of these limits as have ended.
fn release_limited(
    connection: &Connection,
    ended: &[Permit],
    terms: &LimitTerms,
    now: Timestamp,
) -> Answer<u64> {
    let mut free: BTreeMap<LimitKey, u32> = BTreeMap::new();
    for place in ended {
        vacate(connection, *place)?;
        *free.entry(place.limit).or_default() += 1;
    }
    let mut doorway = rooms::Doorway::new(connection, terms, true, now);
    let mut moved = 0;
    for (room, free) in free {
        let past = if room.scope() == LimitScope::Key { 0 } else { HELD_UP };
        let mut look = free.saturating_add(past).min(RELEASED_MAX);
        for _ in 0..LOOKS {
            let let_out = doorway.let_out(room, look, Own::Free(free))?;
            moved += rooms::make(connection, &let_out.moves)?;
            if !let_out.again {
                break;
            }
            // Who went home may not start for another limit, so the next look is for as many again.
            look = RELEASED_MAX;
        }
    }
    Ok(moved)
}

/// Forgets the place of an attempt, if that has ended.
fn vacate(connection: &Connection, place: Permit) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(place.run);
    connection.prepare_cached(sql!("release_vacate"))?.execute(params![
        place.limit.as_bytes(),
        scheduled_at,
        job_no,
        sequence,
        attempt
    ])?;
    Ok(())
}

/// Of the next places, those of attempts that have ended, and where to go on.
fn ended_places(
    connection: &Connection,
    after: Option<Permit>,
    limit: u32,
) -> Answer<(Vec<Permit>, Option<Permit>)> {
    // Nothing comes before an empty key.
    let from = after.map_or_else(Vec::new, |place| place.limit.as_bytes().to_vec());
    let (scheduled_at, job_no, sequence, attempt) =
        after.map_or((0, 0, 0, 0), |place| key_params(place.run));
    let mut statement = connection.prepare_cached(sql!("prune_permits_find"))?;
    let mut rows =
        statement.query(params![from, scheduled_at, job_no, sequence, attempt, limit])?;
    let (mut ended, mut last, mut seen) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let bytes: Vec<u8> = row.get("key")?;
        let limit = LimitKey::from_bytes(&bytes)
            .ok_or_else(|| StoreError::corrupt("place", "key", "not a limit"))?;
        let place = Permit { limit, run: key_from(row)? };
        (last, seen) = (Some(place), seen + 1);
        let has_ended: bool = row.get("has_ended")?;
        ended.extend(has_ended.then_some(place));
    }
    Ok((ended, last.filter(|_| seen == limit)))
}
