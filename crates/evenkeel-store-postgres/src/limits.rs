//! Limit queues: attempts that wait for a permit, and their release.

use std::collections::{BTreeMap, HashMap, HashSet};

use async_trait::async_trait;
use evenkeel_core::AttemptKey;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{Limit, LimitKey, LimitScope, OwnPermits, PermitCounts, ReleasePass};
use evenkeel_store::{
    LimitQueue, LimitStore, LimitTerms, Now, Permit, RELEASE_SCAN_MAX, RELEASED_MAX, ReleaseStep,
    Released, StoreError,
};

use crate::PostgresStore;
use crate::attempts::{Candidate, key_bytes, nth};
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, attempt, count, get, key, micros, sequence, time};

/// Whoever ends looks past so many in a room that are held up by another limit as well,
const HELD_UP: u32 = 50;
/// and then so often at more. The next that looks into all rooms does the rest.
const LOOKS: usize = 3;
/// In so many rooms: each look is at a thousand of each lane. Whoever keeps house does the rest.
const LOOKED_AGAIN_MAX: usize = 10;

#[async_trait]
impl LimitStore for PostgresStore {
    async fn release_limited(
        &self,
        ended: &[Permit],
        terms: &LimitTerms,
        now: Now,
    ) -> Result<u64, StoreError> {
        let args = (ended.to_vec(), terms.clone(), micros(now.literal()));
        // Each statement is for itself: nobody is lost between them.
        self.hot
            .run(args, |connection, args| async move {
                let (ended, terms, now) = &*args;
                vacate(&connection, ended).await?;
                release_limited(&connection, ended, terms, *now).await
            })
            .await
    }

    async fn release_all_limited(
        &self,
        rooms: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        let args = (rooms, micros(now.literal()));
        self.hot
            .run(args, |connection, args| async move {
                let (rooms, now) = &*args;
                release_queues(&connection, rooms, *now).await
            })
            .await
    }

    async fn prune_permits(
        &self,
        after: Option<Permit>,
        limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        self.hot
            .run((after, limit), |connection, args| async move {
                prune_permits(&connection, args.0, args.1).await
            })
            .await
    }
}

/// As many leave the rooms of these limits as have ended.
async fn release_limited(
    connection: &Connection,
    ended: &[Permit],
    terms: &LimitTerms,
    now: Option<i64>,
) -> Tried<u64> {
    let mut free: BTreeMap<LimitKey, u32> = BTreeMap::new();
    for place in ended {
        *free.entry(place.limit).or_default() += 1;
    }
    let mut moved = 0;
    for round in 0..LOOKS {
        let look = |(key, free): (&LimitKey, &u32)| {
            let past = if key.scope() == LimitScope::Key { 0 } else { HELD_UP };
            let look = if round == 0 { free.saturating_add(past) } else { RELEASED_MAX };
            Look { key: *key, look: look.min(RELEASED_MAX), own: OwnPermits::Free(*free) }
        };
        let looks = free.iter().map(look).collect();
        let (again, home) = release_from(connection, looks, terms, true, now).await?;
        moved += home;
        // Who went home may not start for another limit, so the next look is for as many again.
        let rest = free.into_iter().zip(again).filter(|(_, again)| *again);
        free = rest.map(|(room, _)| room).take(LOOKED_AGAIN_MAX).collect();
        if free.is_empty() {
            break;
        }
    }
    Ok(moved)
}

/// Forgets the places of attempts, if those have ended.
async fn vacate(connection: &Connection, ended: &[Permit]) -> Tried<()> {
    let limits: Vec<&[u8]> = ended.iter().map(|place| place.limit.as_bytes()).collect();
    let keys: KeyColumns = ended.iter().map(|place| place.run).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let sql = sql!("release_delete_permits");
    connection.change(sql, &[&limits, scheduled_at, job_no, sequence, attempt]).await?;
    Ok(())
}

async fn prune_permits(
    connection: &Connection,
    after: Option<Permit>,
    limit: u32,
) -> Tried<Option<Permit>> {
    // Nothing comes before an empty key.
    let from = after.map_or_else(Vec::new, |place| place.limit.as_bytes().to_vec());
    let run = after.map(|place| place.run);
    let at = run.map_or(0, |run| run.scheduled_at.as_micros());
    let job_no = run.map_or(0, |run| run.job_no.0);
    let (nth, of) = (run.map_or(0, |run| sequence(run.sequence)), run.map_or(0, attempt));
    let sql = sql!("prune_permits");
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&from, &at, &job_no, &nth, &of, &i64::from(limit)];
    let Some(row) = connection.maybe_row(sql, &params).await? else { return Ok(None) };
    if count(&row, "scanned")? < u64::from(limit) {
        return Ok(None);
    }
    let limit = LimitKey::from_bytes(get(&row, "key")?)
        .ok_or_else(|| StoreError::corrupt("place", "key", "not a limit"))?;
    Ok(Some(Permit { limit, run: key(&row)? }))
}

/// So many runs are looked up in a step to see whether they have their places still, or as many as
/// there are places of one limit.
const LOOKED_UP_MAX: u32 = 20_000;
/// More places than these of a limit that holds up some of a room are believed to be taken.
const BELIEVED_FROM: u32 = 10_000;

/// A waiting room to look into.
pub(super) struct Look {
    pub(super) key: LimitKey,
    /// So many of each lane.
    pub(super) look: u32,
    /// What is known of the limit's places.
    pub(super) own: OwnPermits,
}

/// A room, the limit that holds in it, and how many seem to run under it.
struct Found {
    room: LimitQueue,
    most: Option<u32>,
    running: u32,
}

impl Found {
    fn free(&self) -> u32 {
        self.most.map_or(u32::MAX, |most| most.saturating_sub(self.running))
    }

    /// Would it matter if some have ended, which nobody has noted?
    fn is_unsure(&self) -> bool {
        self.running > 0 && self.free() < RELEASED_MAX
    }

    fn own(&self) -> OwnPermits {
        OwnPermits::Running { running: self.running, highest: self.most.unwrap_or(u32::MAX) }
    }
}

async fn release_queues(
    connection: &Connection,
    rooms: &ReleaseStep,
    now: Option<i64>,
) -> Tried<Released> {
    let (found, last) = look_around(connection, rooms).await?;
    let (mut looks, mut looked_at, mut next) = (Vec::new(), 0, last);
    for (nth, one) in found.iter().enumerate() {
        let look = one.room.look(one.free());
        if looked_at > 0 && looked_at + look > RELEASE_SCAN_MAX {
            next = nth.checked_sub(1).map(|before| found[before].room.key);
            break;
        }
        looked_at += look;
        if look > 0 {
            looks.push(Look { key: one.room.key, look, own: one.own() });
        }
    }
    let (again, moved) = release_from(connection, looks, &rooms.terms, rooms.to_wider, now).await?;
    Ok(Released { moved, next, again: again.contains(&true) })
}

/// The next rooms, and the last of them if there are others after it.
async fn look_around(
    connection: &Connection,
    rooms: &ReleaseStep,
) -> Tried<(Vec<Found>, Option<LimitKey>)> {
    let after = rooms.after.map_or_else(|| "~".to_owned(), LimitKey::queue_pool);
    let sql = sql!("release_queues");
    let rows = connection.rows(sql, &[&after, &i64::from(rooms.limit)]).await?;
    let (mut found, mut unsure) = (Vec::with_capacity(rows.len()), Vec::new());
    let (mut last, mut looked_up, mut is_cut) = (None, 0, rows.len() == rooms.limit as usize);
    for row in &rows {
        let key = LimitKey::of_queue_pool(get(row, "pool")?)
            .ok_or_else(|| StoreError::corrupt("ready", "pool", "not a limit queue"))?;
        let limits: (Option<i32>, Option<i32>) = (get(row, "lowest")?, get(row, "highest")?);
        // It may have been emptied meanwhile.
        let (Some(lowest), Some(highest)) = limits else { continue };
        let room =
            LimitQueue { key, lowest: lowest.cast_unsigned(), highest: highest.cast_unsigned() };
        let most = rooms.terms.limits.max_in_queue(key, room.highest);
        let running = u32::try_from(count(row, "permits")?).unwrap_or(u32::MAX);
        let one = Found { room, most, running };
        if one.is_unsure() {
            if looked_up > 0 && looked_up + running > LOOKED_UP_MAX {
                is_cut = true;
                break;
            }
            looked_up += running;
            unsure.push(key);
        }
        last = Some(key);
        found.push(one);
    }
    let running = running_under(connection, &unsure).await?;
    for one in &mut found {
        one.running = running.get(&one.room.key).copied().unwrap_or(one.running);
    }
    Ok((found, last.filter(|_| is_cut)))
}

/// Who waits in a room, and all limits that it is under.
type Limited = (AttemptKey, Vec<Limit>);

/// Those leave these rooms who could start, and who would only be in the way. Says of each room whether
/// there are places for those behind the ones that were looked at, and how many went home.
async fn release_from(
    connection: &Connection,
    looks: Vec<Look>,
    terms: &LimitTerms,
    to_wider: bool,
    now: Option<i64>,
) -> Tried<(Vec<bool>, u64)> {
    let first = first_of(connection, &looks, terms.aging, now).await?;
    let first: Vec<(Vec<Limited>, bool)> = first
        .into_iter()
        .map(|(room, is_cut)| {
            let limited = |one: Candidate| (one.key, one.limits_under(&terms.limits));
            (room.into_iter().map(limited).collect(), is_cut)
        })
        .collect();
    let mut others = BTreeMap::new();
    for ((room, _), look) in first.iter().zip(&looks) {
        let limits = room.iter().flat_map(|(_, limits)| limits);
        limits.filter(|limit| limit.key != look.key).for_each(|limit| want(&mut others, limit));
    }
    let running = count_others(connection, &others).await?;
    let (mut again, mut moves) = (Vec::with_capacity(looks.len()), Moves::default());
    for (look, (room, is_cut)) in looks.into_iter().zip(first) {
        let mut others = PermitCounts::default();
        for limit in room.iter().flat_map(|(_, limits)| limits) {
            others.note(limit.key, running.get(&limit.key).copied());
        }
        let usher = ReleasePass { queue: look.key, own: look.own, others, to_wider };
        let leaving = usher.select(room, RELEASED_MAX as usize);
        let is_cut =
            is_cut || leaving.to_queue.len() + leaving.to_limits.len() >= RELEASED_MAX as usize;
        again.push(is_cut && leaving.has_more);
        leaving.to_queue.into_iter().for_each(|run| moves.push(run, look.key, None));
        leaving
            .to_limits
            .into_iter()
            .for_each(|(run, limit)| moves.push(run, look.key, Some(limit)));
    }
    let moved = moves.make(connection).await?;
    Ok((again, moved))
}

/// The first of each lane of the rooms in the order of dispatch, as many as are wanted, and whether
/// there may be more of one.
async fn first_of(
    connection: &Connection,
    looks: &[Look],
    aging: Aging,
    now: Option<i64>,
) -> Tried<Vec<(Vec<Candidate>, bool)>> {
    let mut first: Vec<(Vec<Candidate>, bool)> =
        looks.iter().map(|_| (Vec::new(), false)).collect();
    if looks.is_empty() {
        return Ok(first);
    }
    let pools: Vec<String> = looks.iter().map(|look| look.key.queue_pool()).collect();
    let counts: Vec<i64> = looks.iter().map(|look| i64::from(look.look)).collect();
    let sql = sql!("release_find");
    let mut seen = HashSet::new();
    for row in connection.rows(sql, &[&pools, &counts, &now]).await? {
        let candidate = Candidate::read(&row, &aging, time(&row, "now")?)?;
        let nth = usize::try_from(get::<i64>(&row, "nth")? - 1).unwrap_or(usize::MAX);
        if let Some((room, _)) = first.get_mut(nth).filter(|_| seen.insert(candidate.key)) {
            room.push(candidate);
        }
    }
    for ((room, is_cut), look) in first.iter_mut().zip(looks) {
        room.sort_unstable_by_key(Candidate::by_rank);
        let mut lanes: BTreeMap<i16, u32> = BTreeMap::new();
        room.retain(|candidate| {
            let of_lane = lanes.entry(candidate.lane).or_default();
            *of_lane += 1;
            *of_lane <= look.look
        });
        *is_cut = lanes.values().any(|of_lane| *of_lane >= look.look);
    }
    Ok(first)
}

/// How many want a place of a limit, and the least that one of them allows.
type Wanted = BTreeMap<LimitKey, (u32, u32)>;

fn want(wanted: &mut Wanted, limit: &Limit) {
    let (demand, least) = wanted.entry(limit.key).or_insert((0, u32::MAX));
    *demand += 1;
    *least = limit.most.min(*least);
}

/// How many run under limits. Whether all of them do is looked up where it would matter.
async fn count_others(connection: &Connection, wanted: &Wanted) -> Tried<HashMap<LimitKey, u32>> {
    let keys: Vec<LimitKey> = wanted.keys().copied().collect();
    let mut running = counted(connection, &keys, sql!("claim_permit_count")).await?;
    let seems_full = |key: &LimitKey| {
        let (running, (demand, least)) = (running.get(key).copied().unwrap_or(0), wanted[key]);
        (1..BELIEVED_FROM).contains(&running) && running.saturating_add(demand) > least
    };
    let full: Vec<LimitKey> = keys.iter().copied().filter(seems_full).collect();
    running.extend(running_under(connection, &full).await?);
    Ok(running)
}

/// How many really run.
async fn running_under(
    connection: &Connection,
    keys: &[LimitKey],
) -> Tried<HashMap<LimitKey, u32>> {
    counted(connection, keys, sql!("release_running")).await
}

async fn counted(
    connection: &Connection,
    keys: &[LimitKey],
    sql: &str,
) -> Tried<HashMap<LimitKey, u32>> {
    let mut counts = HashMap::with_capacity(keys.len());
    if keys.is_empty() {
        return Ok(counts);
    }
    for row in connection.rows(sql, &[&key_bytes(keys)]).await? {
        if let Some(key) = nth(keys, get(&row, 0)?) {
            counts.insert(key, u32::try_from(count(&row, 1)?).unwrap_or(u32::MAX));
        }
    }
    Ok(counts)
}

/// Who leaves which room for where.
#[derive(Default)]
struct Moves {
    runs: Vec<AttemptKey>,
    from: Vec<String>,
    /// Home if there is none.
    to: Vec<Option<String>>,
    most: Vec<Option<i32>>,
}

impl Moves {
    fn push(&mut self, run: AttemptKey, from: LimitKey, to: Option<Limit>) {
        self.runs.push(run);
        self.from.push(from.queue_pool());
        self.to.push(to.map(|limit| limit.key.queue_pool()));
        self.most.push(to.map(|limit| limit.most.cast_signed()));
    }

    /// Says how many went home.
    async fn make(self, connection: &Connection) -> Tried<u64> {
        if self.runs.is_empty() {
            return Ok(0);
        }
        let Self { runs, from, to, most } = &self;
        let keys: KeyColumns = runs.iter().copied().collect();
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
        let sql = sql!("release_limited");
        let row =
            connection.row(sql, &[scheduled_at, job_no, sequence, attempt, from, to, most]).await?;
        Ok(count(&row, 0)?)
    }
}
