//! Limit queues hold attempts that wait for a permit of a concurrency limit. This module releases
//! these attempts and deletes unused permits.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use evenkeel_core::limit::{Limit, LimitKey, LimitScope, OwnPermits, PermitCounts, ReleasePass};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{
    LimitQueue, LimitStore, LimitTerms, Now, Permit, RELEASE_SCAN_MAX, RELEASED_MAX, ReleaseStep,
    Released, StoreError,
};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::attempts::choose::{Candidate, first_of_lanes};
use crate::connection::Urgency::Batch;
use crate::connection::{RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::rows::{FIRST_KEY, key_from, next_after};

/// How many attempts of the limit queue are read beyond the number of free permits, because another
/// limit may block some of them.
const BLOCKED_MAX: u32 = 50;
/// How many times further attempts are read if the attempts read so far do not use up the free
/// permits. The periodic pass over all limit queues releases the remaining attempts.
const PASSES: usize = 3;

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
            .write(Batch, ended.len(), move |db| release_limited(db, &ended, &terms, resolve(now)))
            .await
    }

    /// A reading connection checks first, because usually no attempt can be released and the writer
    /// is not needed.
    async fn release_all_limited(
        &self,
        step: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        let find = move |db: &Connection| select(db, &step, resolve(now));
        let (moves, released) = self.engine_readers.read(find).await?;
        if moves.is_empty() {
            return Ok(released);
        }
        let moved = self.writer.write(Batch, moves.len(), move |db| move_all(db, &moves)).await?;
        Ok(Released { moved, ..released })
    }

    /// A reading connection checks first whether there are unused permits, because usually there
    /// are none and the writer is not needed.
    async fn prune_permits(
        &self,
        after: Option<Permit>,
        limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        let find = move |db: &Connection| ended_permits(db, after, limit);
        let (ended, next) = self.engine_readers.read(find).await?;
        if !ended.is_empty() {
            self.writer
                .write(Batch, limit as usize, move |db| {
                    ended.iter().try_for_each(|permit| delete_permit(db, *permit))
                })
                .await?;
        }
        Ok(next)
    }
}

/// Releases one attempt from a limit queue for each attempt under the limit that has finished.
fn release_limited(
    connection: &Connection,
    ended: &[Permit],
    terms: &LimitTerms,
    now: Timestamp,
) -> Answer<u64> {
    let mut free: BTreeMap<LimitKey, u32> = BTreeMap::new();
    for permit in ended {
        delete_permit(connection, *permit)?;
        *free.entry(permit.limit).or_default() += 1;
    }
    let mut release = Release::new(connection, terms, true, now);
    let mut moved = 0;
    for (queue, free) in free {
        let past = if queue.scope() == LimitScope::Key { 0 } else { BLOCKED_MAX };
        let mut look = free.saturating_add(past).min(RELEASED_MAX);
        for _ in 0..PASSES {
            let selected = release.select(queue, look, OwnPermits::Free(free))?;
            moved += move_all(connection, &selected.moves)?;
            if !selected.again {
                break;
            }
            // Another limit may block released attempts, so the next pass reads more attempts.
            look = RELEASED_MAX;
        }
    }
    Ok(moved)
}

fn delete_permit(connection: &Connection, permit: Permit) -> Answer<()> {
    connection.run(sql!("release_delete_permits"), &[&permit.limit, &permit.run])
}

/// Returns which of the next `limit` permits belong to finished attempts, and the position at which
/// the next step starts.
fn ended_permits(
    connection: &Connection,
    after: Option<Permit>,
    limit: u32,
) -> Answer<(Vec<Permit>, Option<Permit>)> {
    // An empty key sorts before all limit keys.
    let from = after.map_or_else(Vec::new, |permit| permit.limit.as_bytes().to_vec());
    let run = after.map_or(FIRST_KEY, |permit| permit.run);
    let mut ended = Vec::new();
    let seen = connection.rows(sql!("prune_permits_find"), &[&from, &run, &limit], |row| {
        let bytes: Vec<u8> = row.get("key")?;
        let limit = LimitKey::from_bytes(&bytes)
            .ok_or_else(|| StoreError::corrupt("permit", "key", "not a limit key"))?;
        let permit = Permit { limit, run: key_from(row)? };
        if row.get("has_ended")? {
            ended.push(permit);
        }
        Ok(permit)
    })?;
    Ok((ended, next_after(&seen, limit).copied()))
}

/// Approximate number of permits for which one release step checks whether the attempt still runs;
/// a single limit with more permits is checked completely.
const CHECKED_MAX: u32 = 20_000;
/// If another concurrency limit has at least this many permits, all of them are assumed to be in
/// use.
const ASSUMED_FROM: u32 = 10_000;

/// An attempt that leaves a limit queue.
struct Move {
    run: AttemptKey,
    from: LimitKey,
    /// The limit queue to move the attempt to; `None` returns the attempt to its pool.
    to: Option<Limit>,
}

/// The attempts that leave a limit queue.
struct Selected {
    moves: Vec<Move>,
    /// True if permits are left for attempts that were not read.
    again: bool,
}

/// Selects the attempts that leave the next limit queues, and returns the position at which the
/// next step starts. Writes nothing.
fn select(
    connection: &Connection,
    step: &ReleaseStep,
    now: Timestamp,
) -> Answer<(Vec<Move>, Released)> {
    let ReleaseStep { after, limit, terms, to_wider } = step;
    let mut release = Release::new(connection, terms, *to_wider, now);
    let mut moves = Vec::new();
    let mut released = Released { next: *after, ..Released::default() };
    let (mut read, mut checked) = (0, 0);
    for _ in 0..*limit {
        let Some(queue) = next_queue(connection, released.next)? else {
            released.next = None;
            break;
        };
        let most = terms.limits.max_in_queue(queue.key, queue.highest);
        let mut running = count(connection, queue.key)?;
        let free = |running| most.map_or(u32::MAX, |most| most.saturating_sub(running));
        // The limit may seem full because some permits belong to finished attempts.
        if running > 0 && free(running) < RELEASED_MAX {
            if checked > 0 && checked + running > CHECKED_MAX {
                break;
            }
            checked += running;
            running = running_under(connection, queue.key)?;
        }
        let look = queue.look(free(running));
        if read > 0 && read + look > RELEASE_SCAN_MAX {
            break;
        }
        read += look;
        if look > 0 {
            let own = OwnPermits::Running { running, highest: most.unwrap_or(u32::MAX) };
            let selected = release.select(queue.key, look, own)?;
            released.again |= selected.again;
            moves.extend(selected.moves);
        }
        released.next = Some(queue.key);
    }
    Ok((moves, released))
}

fn next_queue(connection: &Connection, after: Option<LimitKey>) -> Answer<Option<LimitQueue>> {
    let after = after.map_or_else(|| "~".to_owned(), LimitKey::queue_pool);
    connection.maybe_row(sql!("release_queues"), &[&after], |row| {
        let (pool, lowest, highest): (String, u32, u32) = row.try_into()?;
        let key = LimitKey::of_queue_pool(&pool)
            .ok_or_else(|| StoreError::corrupt("ready", "pool", "not the pool of a limit queue"))?;
        Ok(LimitQueue { key, lowest, highest })
    })
}

/// Selects the attempts that leave limit queues: attempts that can start, and attempts that another
/// limit blocks, which move to that limit's queue.
struct Release<'a> {
    connection: &'a Connection,
    terms: &'a LimitTerms,
    to_wider: bool,
    now: Timestamp,
    /// How many attempts run under each of the other limits that apply to queued attempts. The
    /// tenant limit is counted once for all limit queues of the tenant.
    counted: HashMap<LimitKey, Counted>,
}

#[derive(Copy, Clone)]
struct Counted {
    running: u32,
    /// True if `running` counts running attempts, false if it counts permits.
    is_checked: bool,
}

impl<'a> Release<'a> {
    fn new(
        connection: &'a Connection,
        terms: &'a LimitTerms,
        to_wider: bool,
        now: Timestamp,
    ) -> Self {
        Self { connection, terms, to_wider, now, counted: HashMap::new() }
    }

    /// Selects among the first `look` attempts of each lane of the limit queue.
    fn select(&mut self, queue: LimitKey, look: u32, own: OwnPermits) -> Answer<Selected> {
        let Self { connection, terms, to_wider, now, .. } = *self;
        let look = look as usize;
        let lanes = first_of_lanes(connection, queue.queue_pool(), look, terms.aging, now)?;
        let is_cut = lanes.iter().any(|lane| lane.len() >= look);
        let limits_of = |attempt: &Candidate| (attempt.key, attempt.limits_under(&terms.limits));
        let first: Vec<(AttemptKey, Vec<Limit>)> = lanes.iter().flatten().map(limits_of).collect();
        let others = first.iter().flat_map(|(_, limits)| limits).filter(|limit| limit.key != queue);
        let others = self.count_others(others)?;
        let pass = ReleasePass { queue, own, others, to_wider };
        let leaving = pass.select(first, RELEASED_MAX as usize);
        let is_cut =
            is_cut || leaving.to_queue.len() + leaving.to_limits.len() >= RELEASED_MAX as usize;
        let to_pools = leaving.to_queue.into_iter().map(|run| Move { run, from: queue, to: None });
        let to_queues =
            leaving.to_limits.into_iter().map(|(run, to)| Move { run, from: queue, to: Some(to) });
        Ok(Selected {
            moves: to_pools.chain(to_queues).collect(),
            again: is_cut && leaving.has_more,
        })
    }

    /// Counts the permits of each limit, or the running attempts under the limit if that can change
    /// the result.
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
                None => Counted { running: count(self.connection, key)?, is_checked: false },
            };
            let matters = counted.running.saturating_add(demand) > least;
            if matters && !counted.is_checked && (1..ASSUMED_FROM).contains(&counted.running) {
                let running = running_under(self.connection, key)?;
                counted = Counted { running, is_checked: true };
            }
            self.counted.insert(key, counted);
            others.note(key, Some(counted.running));
        }
        Ok(others)
    }
}

fn count(connection: &Connection, key: LimitKey) -> Answer<u32> {
    connection.value(sql!("claim_permit_count"), &[&key])
}

/// Counts the attempts that hold a permit of this limit and are still running.
pub(crate) fn running_under(connection: &Connection, key: LimitKey) -> Answer<u32> {
    connection.value(sql!("release_running"), &[&key])
}

/// Moves the selected attempts that are still in their limit queue. Returns how many attempts
/// returned to their pool.
fn move_all(connection: &Connection, moves: &[Move]) -> Answer<u64> {
    let mut update = connection.prepare_cached(sql!("release_limited"))?;
    let mut moved = 0;
    for Move { run, from, to } in moves {
        let (queue, most) = (to.map(|limit| limit.key.queue_pool()), to.map(|limit| limit.most));
        let left = update.change(&[run, &from.queue_pool(), &queue, &most])?;
        moved += if to.is_none() { left } else { 0 };
    }
    Ok(moved)
}
