//! Limit queues hold attempts that wait for a permit of a concurrency limit; this module releases
//! these attempts.

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
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, count, get, key, key_columns, micros, position, time};

/// How many attempts the first round reads beyond the number of free permits of a tenant or lane
/// limit, because a second limit may block some of them.
const EXTRA: u32 = 50;
/// Maximum number of release rounds after attempts have finished. The periodic pass over all limit
/// queues releases the remaining attempts.
const ROUNDS: usize = 3;
/// Maximum number of limit queues that the second and third release rounds read, up to 1,000
/// attempts per lane of each queue.
const QUEUES_AGAIN_MAX: usize = 10;

#[async_trait]
impl LimitStore for PostgresStore {
    async fn release_limited(
        &self,
        ended: &[Permit],
        terms: &LimitTerms,
        now: Now,
    ) -> Result<u64, StoreError> {
        let now = micros(now.literal());
        // Each statement is a transaction of its own, which is safe because every attempt is in
        // some queue after each statement.
        run!(self.hot, (ended.to_vec(), terms.clone()), |connection, (ended, terms)| {
            delete_permits(connection, ended).await?;
            release_limited(connection, ended, terms, now).await
        })
    }

    async fn release_all_limited(
        &self,
        queues: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        let now = micros(now.literal());
        run!(self.hot, queues, |connection, queues| release_queues(connection, queues, now).await)
    }

    async fn prune_permits(
        &self,
        after: Option<Permit>,
        limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        run!(self.hot, |connection| prune_permits(connection, after, limit).await)
    }
}

/// Releases as many attempts from the queues of these limits as permits have become free.
async fn release_limited(
    connection: &Connection,
    ended: &[Permit],
    terms: &LimitTerms,
    now: Option<i64>,
) -> Tried<u64> {
    let mut free: BTreeMap<LimitKey, u32> = BTreeMap::new();
    for permit in ended {
        *free.entry(permit.limit).or_default() += 1;
    }
    let mut moved = 0;
    for round in 0..ROUNDS {
        let scan = |(key, free): (&LimitKey, &u32)| {
            let extra = if key.scope() == LimitScope::Key { 0 } else { EXTRA };
            let per_lane = if round == 0 { free.saturating_add(extra) } else { RELEASED_MAX };
            QueueScan {
                key: *key,
                per_lane: per_lane.min(RELEASED_MAX),
                own: OwnPermits::Free(*free),
            }
        };
        let scans = free.iter().map(scan).collect();
        let (again, released) = release_from(connection, scans, terms, true, now).await?;
        moved += released;
        // Another limit may block a released attempt, so the next round may release as many
        // attempts again.
        let rest = free.into_iter().zip(again).filter(|(_, again)| *again);
        free = rest.map(|(queue, _)| queue).take(QUEUES_AGAIN_MAX).collect();
        if free.is_empty() {
            break;
        }
    }
    Ok(moved)
}

async fn delete_permits(connection: &Connection, ended: &[Permit]) -> Tried<()> {
    let limits = column(ended, |permit| permit.limit.as_bytes());
    let keys: KeyColumns = ended.iter().map(|permit| permit.run).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let params: Params<'_> = &[&limits, scheduled_at, job_no, sequence, attempt];
    connection.change(sql!("release_delete_permits"), params).await?;
    Ok(())
}

async fn prune_permits(
    connection: &Connection,
    after: Option<Permit>,
    limit: u32,
) -> Tried<Option<Permit>> {
    // An empty key sorts before every limit key.
    let from = after.map_or_else(Vec::new, |permit| permit.limit.as_bytes().to_vec());
    let (at, job_no, sequence, attempt) =
        after.map_or((0, 0, 0, 0), |permit| key_columns(permit.run));
    let params: Params<'_> = &[&from, &at, &job_no, &sequence, &attempt, &i64::from(limit)];
    let Some(row) = connection.maybe_row(sql!("prune_permits"), params).await? else {
        return Ok(None);
    };
    if count(&row, "scanned")? < u64::from(limit) {
        return Ok(None);
    }
    let limit = LimitKey::from_bytes(get(&row, "key")?)
        .ok_or_else(|| StoreError::corrupt("permit", "key", "not a limit key"))?;
    Ok(Some(Permit { limit, run: key(&row)? }))
}

/// Approximate number of permits for which one release step checks whether the attempt still runs;
/// a single limit with more permits is checked completely.
const CHECKED_MAX: u32 = 20_000;
/// A concurrency limit with more permits than this counts as full, and its attempts are not looked
/// up.
const COUNTED_MAX: u32 = 10_000;

/// A limit queue to release attempts from.
pub(super) struct QueueScan {
    pub(super) key: LimitKey,
    /// Number of attempts to read from each lane.
    pub(super) per_lane: u32,
    /// The free or used permits of the limit that this queue belongs to.
    pub(super) own: OwnPermits,
}

/// A limit queue with its limit and the number of permits in use.
struct QueueState {
    queue: LimitQueue,
    most: Option<u32>,
    running: u32,
}

impl QueueState {
    fn free(&self) -> u32 {
        self.most.map_or(u32::MAX, |most| most.saturating_sub(self.running))
    }

    /// True if permits of finished attempts could change how many attempts are released.
    fn needs_check(&self) -> bool {
        self.running > 0 && self.free() < RELEASED_MAX
    }

    fn own(&self) -> OwnPermits {
        OwnPermits::Running { running: self.running, highest: self.most.unwrap_or(u32::MAX) }
    }
}

async fn release_queues(
    connection: &Connection,
    queues: &ReleaseStep,
    now: Option<i64>,
) -> Tried<Released> {
    let (found, last) = find_queues(connection, queues).await?;
    let (mut scans, mut scanned, mut next) = (Vec::new(), 0, last);
    for (nth, state) in found.iter().enumerate() {
        let per_lane = state.queue.look(state.free());
        if scanned > 0 && scanned + per_lane > RELEASE_SCAN_MAX {
            next = nth.checked_sub(1).map(|before| found[before].queue.key);
            break;
        }
        scanned += per_lane;
        if per_lane > 0 {
            scans.push(QueueScan { key: state.queue.key, per_lane, own: state.own() });
        }
    }
    let (again, moved) =
        release_from(connection, scans, &queues.terms, queues.to_wider, now).await?;
    Ok(Released { moved, next, again: again.contains(&true) })
}

/// Returns the next limit queues, and the last of these queues if more queues follow.
async fn find_queues(
    connection: &Connection,
    queues: &ReleaseStep,
) -> Tried<(Vec<QueueState>, Option<LimitKey>)> {
    let after = queues.after.map_or_else(|| "~".to_owned(), LimitKey::queue_pool);
    let params: Params<'_> = &[&after, &i64::from(queues.limit)];
    let rows = connection.rows(sql!("release_queues"), params).await?;
    let (mut found, mut to_check) = (Vec::with_capacity(rows.len()), Vec::new());
    let (mut last, mut checked, mut is_cut) = (None, 0, rows.len() == queues.limit as usize);
    for row in &rows {
        let key = LimitKey::of_queue_pool(get(row, "pool")?)
            .ok_or_else(|| StoreError::corrupt("ready", "pool", "not a limit queue"))?;
        let limits: (Option<i32>, Option<i32>) = (get(row, "lowest")?, get(row, "highest")?);
        // The limit queue may have become empty in the meantime.
        let (Some(lowest), Some(highest)) = limits else { continue };
        let queue =
            LimitQueue { key, lowest: lowest.cast_unsigned(), highest: highest.cast_unsigned() };
        let most = queues.terms.limits.max_in_queue(key, queue.highest);
        let running = u32::try_from(count(row, "permits")?).unwrap_or(u32::MAX);
        let state = QueueState { queue, most, running };
        if state.needs_check() {
            if checked > 0 && checked + running > CHECKED_MAX {
                is_cut = true;
                break;
            }
            checked += running;
            to_check.push(key);
        }
        last = Some(key);
        found.push(state);
    }
    let running = running_under(connection, &to_check).await?;
    for state in &mut found {
        state.running = running.get(&state.queue.key).copied().unwrap_or(state.running);
    }
    Ok((found, last.filter(|_| is_cut)))
}

/// An attempt in a limit queue, with all limits that apply to the attempt.
type Limited = (AttemptKey, Vec<Limit>);

/// Releases from these limit queues the attempts that could start, and moves attempts that another
/// limit blocks to the queue of that limit. Returns, for each queue, whether permits are left for
/// attempts that were not read. Also returns the number of released attempts.
async fn release_from(
    connection: &Connection,
    scans: Vec<QueueScan>,
    terms: &LimitTerms,
    to_wider: bool,
    now: Option<i64>,
) -> Tried<(Vec<bool>, u64)> {
    let first = first_of(connection, &scans, terms.aging, now).await?;
    let first: Vec<(Vec<Limited>, bool)> = first
        .into_iter()
        .map(|(queue, is_cut)| {
            let limited =
                |candidate: Candidate| (candidate.key, candidate.limits_under(&terms.limits));
            (queue.into_iter().map(limited).collect(), is_cut)
        })
        .collect();
    let mut others = BTreeMap::new();
    for ((queue, _), scan) in first.iter().zip(&scans) {
        let limits = queue.iter().flat_map(|(_, limits)| limits);
        limits.filter(|limit| limit.key != scan.key).for_each(|limit| want(&mut others, limit));
    }
    let running = count_others(connection, &others).await?;
    let (mut again, mut moves) = (Vec::with_capacity(scans.len()), Vec::new());
    for (scan, (queue, is_cut)) in scans.into_iter().zip(first) {
        let mut others = PermitCounts::default();
        for limit in queue.iter().flat_map(|(_, limits)| limits) {
            others.note(limit.key, running.get(&limit.key).copied());
        }
        let pass = ReleasePass { queue: scan.key, own: scan.own, others, to_wider };
        let leaving = pass.select(queue, RELEASED_MAX as usize);
        let is_cut =
            is_cut || leaving.to_queue.len() + leaving.to_limits.len() >= RELEASED_MAX as usize;
        again.push(is_cut && leaving.has_more);
        moves.extend(leaving.to_queue.into_iter().map(|run| (run, scan.key, None)));
        let to_limits = leaving.to_limits.into_iter();
        moves.extend(to_limits.map(|(run, limit)| (run, scan.key, Some(limit))));
    }
    Ok((again, make(connection, &moves).await?))
}

/// Returns the first attempts of each lane of the limit queues in dispatch order, and whether a
/// queue has further attempts.
async fn first_of(
    connection: &Connection,
    scans: &[QueueScan],
    aging: Aging,
    now: Option<i64>,
) -> Tried<Vec<(Vec<Candidate>, bool)>> {
    let mut first: Vec<(Vec<Candidate>, bool)> =
        scans.iter().map(|_| (Vec::new(), false)).collect();
    if scans.is_empty() {
        return Ok(first);
    }
    let (pools, counts): (Vec<String>, Vec<i64>) =
        scans.iter().map(|scan| (scan.key.queue_pool(), i64::from(scan.per_lane))).unzip();
    let mut seen = HashSet::new();
    for row in connection.rows(sql!("release_find"), &[&pools, &counts, &now]).await? {
        let candidate = Candidate::read(&row, &aging, time(&row, "now")?)?;
        let nth = position(&row, "nth")?;
        if let Some((queue, _)) = first.get_mut(nth).filter(|_| seen.insert(candidate.key)) {
            queue.push(candidate);
        }
    }
    for ((queue, is_cut), scan) in first.iter_mut().zip(scans) {
        queue.sort_unstable_by_key(Candidate::by_rank);
        let mut lanes: BTreeMap<i16, u32> = BTreeMap::new();
        queue.retain(|candidate| {
            let of_lane = lanes.entry(candidate.lane).or_default();
            *of_lane += 1;
            *of_lane <= scan.per_lane
        });
        *is_cut = lanes.values().any(|of_lane| *of_lane >= scan.per_lane);
    }
    Ok(first)
}

/// For each limit, the number of attempts that need a permit of it, and the lowest limit value
/// among these attempts.
type Wanted = BTreeMap<LimitKey, (u32, u32)>;

fn want(wanted: &mut Wanted, limit: &Limit) {
    let (demand, least) = wanted.entry(limit.key).or_insert((0, u32::MAX));
    *demand += 1;
    *least = limit.most.min(*least);
}

/// Returns the number of permits of each limit. If a limit seems full, only the permits of running
/// attempts are counted.
async fn count_others(connection: &Connection, wanted: &Wanted) -> Tried<HashMap<LimitKey, u32>> {
    let keys: Vec<LimitKey> = wanted.keys().copied().collect();
    let mut running = counted(connection, &keys, sql!("claim_permit_count")).await?;
    let seems_full = |key: &LimitKey| {
        let (running, (demand, least)) = (running.get(key).copied().unwrap_or(0), wanted[key]);
        (1..COUNTED_MAX).contains(&running) && running.saturating_add(demand) > least
    };
    let full: Vec<LimitKey> = keys.iter().copied().filter(seems_full).collect();
    running.extend(running_under(connection, &full).await?);
    Ok(running)
}

/// Returns the number of running attempts that hold a permit of each limit.
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

/// An attempt that leaves a limit queue, and the limit whose queue it moves to; `None` if the
/// attempt returns to its pool.
type Move = (AttemptKey, LimitKey, Option<Limit>);

/// Returns the number of attempts that returned to their pool.
async fn make(connection: &Connection, moves: &[Move]) -> Tried<u64> {
    if moves.is_empty() {
        return Ok(0);
    }
    let keys: KeyColumns = moves.iter().map(|(run, ..)| *run).collect();
    let from = column(moves, |(_, from, _)| from.queue_pool());
    let to = column(moves, |(.., to)| to.map(|limit| limit.key.queue_pool()));
    let most = column(moves, |(.., to)| to.map(|limit| limit.most.cast_signed()));
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    let params: Params<'_> = &[scheduled_at, job_no, sequence, attempt, &from, &to, &most];
    count(&connection.row(sql!("release_limited"), params).await?, 0)
}
