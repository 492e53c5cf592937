//! Waiting rooms of limits, and the places that nobody has any more.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{Limit, LimitKey, LimitScope, OwnPermits, PermitCounts, ReleasePass};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{
    LimitQueue, LimitStore, LimitTerms, Now, Permit, RELEASE_SCAN_MAX, RELEASED_MAX, ReleaseStep,
    Released, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::SqliteStore;
use crate::attempts::choose::{Candidate, first_of_lanes};
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::Batch;
use crate::error::Answer;
use crate::rows::{key_from, key_params};

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
        let look = move |db: &Connection| look_around(db, &rooms, resolve(now));
        let (moves, unparked) = self.engine_readers.read(look).await?;
        if moves.is_empty() {
            return Ok(unparked);
        }
        let moved = self
            .writer
            .write(Batch, moves.len(), move |session| make(session.connection(), &moves))
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
    let mut doorway = Doorway::new(connection, terms, true, now);
    let mut moved = 0;
    for (room, free) in free {
        let past = if room.scope() == LimitScope::Key { 0 } else { HELD_UP };
        let mut look = free.saturating_add(past).min(RELEASED_MAX);
        for _ in 0..LOOKS {
            let let_out = doorway.let_out(room, look, OwnPermits::Free(free))?;
            moved += make(connection, &let_out.moves)?;
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
    connection.prepare_cached(sql!("release_delete_permits"))?.execute(params![
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

/// So many runs are looked up in a step to see whether they have their places still, or as many as
/// there are places of one limit.
const LOOKED_UP_MAX: u32 = 20_000;
/// More places than these of a limit that holds up some of a room are believed to be taken.
const BELIEVED_FROM: u32 = 10_000;

/// One who leaves a waiting room.
struct Move {
    run: AttemptKey,
    from: LimitKey,
    /// Home if there is none.
    to: Option<Limit>,
}

/// What becomes of those in a room.
struct LetOut {
    moves: Vec<Move>,
    /// There are places for those behind the ones that were looked at.
    again: bool,
}

/// Who leaves some rooms, and how far this step has come. Nothing is written.
fn look_around(
    connection: &Connection,
    rooms: &ReleaseStep,
    now: Timestamp,
) -> Answer<(Vec<Move>, Released)> {
    let ReleaseStep { after, limit, terms, to_wider } = rooms;
    let mut doorway = Doorway::new(connection, terms, *to_wider, now);
    let mut moves = Vec::new();
    let mut unparked = Released { next: *after, ..Released::default() };
    let (mut looked_at, mut looked_up) = (0, 0);
    for _ in 0..*limit {
        let Some(room) = next_room(connection, unparked.next)? else {
            unparked.next = None;
            break;
        };
        let most = terms.limits.max_in_queue(room.key, room.highest);
        let mut running = count(connection, room.key)?;
        let free = |running| most.map_or(u32::MAX, |most| most.saturating_sub(running));
        // Some may have ended, which nobody has noted.
        if running > 0 && free(running) < RELEASED_MAX {
            if looked_up > 0 && looked_up + running > LOOKED_UP_MAX {
                break;
            }
            looked_up += running;
            running = running_under(connection, room.key)?;
        }
        let look = room.look(free(running));
        if looked_at > 0 && looked_at + look > RELEASE_SCAN_MAX {
            break;
        }
        looked_at += look;
        if look > 0 {
            let own = OwnPermits::Running { running, highest: most.unwrap_or(u32::MAX) };
            let let_out = doorway.let_out(room.key, look, own)?;
            unparked.again |= let_out.again;
            moves.extend(let_out.moves);
        }
        unparked.next = Some(room.key);
    }
    Ok((moves, unparked))
}

fn next_room(connection: &Connection, after: Option<LimitKey>) -> Answer<Option<LimitQueue>> {
    let after = after.map_or_else(|| "~".to_owned(), LimitKey::queue_pool);
    let next = connection
        .prepare_cached(sql!("release_queues"))?
        .query_row([&after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((pool, lowest, highest)): Option<(String, u32, u32)> = next else { return Ok(None) };
    let key = LimitKey::of_queue_pool(&pool)
        .ok_or_else(|| StoreError::corrupt("ready", "pool", "no waiting room"))?;
    Ok(Some(LimitQueue { key, lowest, highest }))
}

/// Lets those out of rooms who could start, and who would only be in the way.
struct Doorway<'a> {
    connection: &'a Connection,
    terms: &'a LimitTerms,
    to_wider: bool,
    now: Timestamp,
    /// How many run under limits that hold up some of a room as well. All rooms of a tenant have that
    /// one in common, so it is counted once for all of them.
    counted: HashMap<LimitKey, Counted>,
}

/// How many run under a limit.
#[derive(Copy, Clone)]
struct Counted {
    running: u32,
    /// They were looked up, and not only counted by their places.
    is_looked_up: bool,
}

impl<'a> Doorway<'a> {
    fn new(
        connection: &'a Connection,
        terms: &'a LimitTerms,
        to_wider: bool,
        now: Timestamp,
    ) -> Self {
        Self { connection, terms, to_wider, now, counted: HashMap::new() }
    }

    /// Of the first `look` of each lane.
    fn let_out(&mut self, room: LimitKey, look: u32, own: OwnPermits) -> Answer<LetOut> {
        let Self { connection, terms, to_wider, now, .. } = *self;
        let (first, is_cut) = first_of(connection, room, look as usize, terms.aging, now)?;
        let first: Vec<(AttemptKey, Vec<Limit>)> =
            first.iter().map(|one| (one.key, one.limits_under(&terms.limits))).collect();
        let others = first.iter().flat_map(|(_, limits)| limits).filter(|limit| limit.key != room);
        let others = self.count_others(others)?;
        let usher = ReleasePass { queue: room, own, others, to_wider };
        let leaving = usher.select(first, RELEASED_MAX as usize);
        let is_cut =
            is_cut || leaving.to_queue.len() + leaving.to_limits.len() >= RELEASED_MAX as usize;
        let homeward = leaving.to_queue.into_iter().map(|run| Move { run, from: room, to: None });
        let onward =
            leaving.to_limits.into_iter().map(|(run, to)| Move { run, from: room, to: Some(to) });
        Ok(LetOut { moves: homeward.chain(onward).collect(), again: is_cut && leaving.has_more })
    }

    /// How many run under limits. Whether all of them do is looked up where it would matter.
    fn count_others<'l>(
        &mut self,
        limits: impl Iterator<Item = &'l Limit>,
    ) -> Answer<PermitCounts> {
        let mut wanted: HashMap<LimitKey, (u32, u32)> = HashMap::new();
        for limit in limits {
            let (demand, least) = wanted.entry(limit.key).or_insert((0, u32::MAX));
            *demand += 1;
            *least = limit.most.min(*least);
        }
        let mut others = PermitCounts::default();
        for (key, (demand, least)) in wanted {
            let mut counted = match self.counted.get(&key) {
                Some(counted) => *counted,
                None => Counted { running: count(self.connection, key)?, is_looked_up: false },
            };
            let matters = counted.running.saturating_add(demand) > least;
            if matters && !counted.is_looked_up && (1..BELIEVED_FROM).contains(&counted.running) {
                let running = running_under(self.connection, key)?;
                counted = Counted { running, is_looked_up: true };
            }
            self.counted.insert(key, counted);
            others.note(key, Some(counted.running));
        }
        Ok(others)
    }
}

/// The first of each lane of a room, and whether there may be more of one.
fn first_of(
    connection: &Connection,
    room: LimitKey,
    look: usize,
    aging: Aging,
    now: Timestamp,
) -> Answer<(Vec<Candidate>, bool)> {
    let lanes = first_of_lanes(connection, room.queue_pool(), look, aging, now)?;
    let is_cut = lanes.iter().any(|lane| lane.len() >= look);
    Ok((lanes.into_iter().flatten().collect(), is_cut))
}

fn count(connection: &Connection, key: LimitKey) -> Answer<u32> {
    Ok(connection
        .prepare_cached(sql!("claim_permit_count"))?
        .query_row([key.as_bytes()], |row| row.get(0))?)
}

/// How many of those who have places really run.
pub(crate) fn running_under(connection: &Connection, key: LimitKey) -> Answer<u32> {
    Ok(connection
        .prepare_cached(sql!("release_running"))?
        .query_row([key.as_bytes()], |row| row.get(0))?)
}

/// Says how many went home. Who has left meanwhile is let be.
fn make(connection: &Connection, moves: &[Move]) -> Answer<u64> {
    let mut leave = connection.prepare_cached(sql!("release_limited"))?;
    let mut moved = 0;
    for Move { run, from, to } in moves {
        let (scheduled_at, job_no, sequence, attempt) = key_params(*run);
        let (room, most) = (to.map(|limit| limit.key.queue_pool()), to.map(|limit| limit.most));
        let left = leave.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            from.queue_pool(),
            room,
            most
        ])?;
        moved += if to.is_none() { left as u64 } else { 0 };
    }
    Ok(moved)
}
