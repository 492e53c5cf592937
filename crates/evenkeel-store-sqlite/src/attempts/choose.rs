//! Chooses the attempts of a claim: those with the highest rank in the queue.
//!
//! The rank of an attempt changes with time. The rank is the higher of two values: the attempt's
//! priority and the rank gained by waiting. Time changes neither the order of attempts by priority
//! nor their order by waiting time. So each of the highest-ranked attempts is at the front of the
//! order by priority or of the order by waiting time. The queue has one index for the order by
//! priority and one for the order by waiting time. A claim reads the index by waiting time only if
//! the index by priority has filled the claim, and only down to the rank of the last attempt found
//! by priority.

use std::cmp::Reverse;
use std::collections::HashSet;

use evenkeel_core::aging::{Aging, Rank, Rise};
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{KeyDigest, KeyLimit, Limit, Limits};
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{Claim, QueuePosition, RunLink, StoreError};
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunPrepared};
use crate::error::Answer;
use crate::rows::{key_from, prev_from, priority_from};

/// A queued attempt that may be claimed.
pub(crate) struct Candidate {
    pub(super) lane: Lane,
    priority: Priority,
    rank: Rank,
    should_start_by: i64,
    pub(super) since: Timestamp,
    is_own_priority: bool,
    pub(crate) key: AttemptKey,
    pub(super) tenant: TenantNo,
    pub(super) fence: Fence,
    pub(super) crashes: u16,
    pub(super) prev: Option<RunLink>,
    /// The concurrency limit of the job's concurrency key.
    pub(super) limit: Option<KeyLimit>,
}

impl Candidate {
    /// Returns the priority of the run, or `None` if the run has the priority of its job.
    pub(super) fn own_priority(&self) -> Option<Priority> {
        self.is_own_priority.then_some(self.priority)
    }

    /// Returns the limits that apply to the attempt, the narrowest limit first.
    pub(crate) fn limits_under(&self, limits: &Limits) -> Vec<Limit> {
        limits.on(self.tenant, self.lane, self.limit)
    }

    /// Returns the sort key for attempts of a lane; the attempt with the lowest key is claimed
    /// first.
    pub(super) fn by_rank(&self) -> impl Ord + use<> {
        let key = self.key;
        (Reverse(self.rank), self.should_start_by, self.since, key.job_no, key)
    }

    fn by_priority(&self) -> impl Ord + use<> {
        let key = self.key;
        (Reverse(self.priority), self.should_start_by, self.since, key.job_no, key)
    }
}

/// Gives each lane its guaranteed number of attempts first, then the remaining capacity to the
/// lanes in order.
pub(super) fn choose(
    connection: &Connection,
    claim: &Claim,
    now: Timestamp,
) -> Answer<Vec<Candidate>> {
    let reader = QueueReader { connection, claim, pools: distinct(&claim.pools), now };
    let mut lanes: Vec<Vec<Candidate>> = Vec::with_capacity(Lane::ALL.len());
    for lane in Lane::ALL {
        // A lane can get the capacity that earlier lanes leave free, and at least the capacity that
        // is guaranteed to this lane and all later lanes.
        let left = claim.capacity.saturating_sub(lanes.iter().map(Vec::len).sum());
        let own: usize = claim.guaranteed[lane as usize..].iter().sum();
        lanes.push(reader.first_of_lane(lane, left.max(own).min(claim.capacity))?);
    }
    let mut left = claim.capacity;
    let mut shares = [0; Lane::ALL.len()];
    for (lane, waiting) in lanes.iter().enumerate() {
        shares[lane] = claim.guaranteed[lane].min(waiting.len()).min(left);
        left -= shares[lane];
    }
    for (lane, waiting) in lanes.iter().enumerate() {
        let more = (waiting.len() - shares[lane]).min(left);
        shares[lane] += more;
        left -= more;
    }
    let shared = lanes.into_iter().zip(shares);
    Ok(shared.flat_map(|(waiting, share)| waiting.into_iter().take(share)).collect())
}

/// Returns the first attempts of each lane of one pool that can be claimed now by a node that no
/// job excludes.
pub(crate) fn first_of_lanes(
    connection: &Connection,
    pool: String,
    count: usize,
    aging: Aging,
    now: Timestamp,
) -> Answer<Vec<Vec<Candidate>>> {
    let claim = Claim {
        node: NodeNo(0),
        node_name: String::new(),
        pools: vec![pool],
        capacity: count,
        guaranteed: [0; Lane::ALL.len()],
        aging,
        limits: Limits::default(),
    };
    let reader = QueueReader { connection, claim: &claim, pools: distinct(&claim.pools), now };
    Lane::ALL.into_iter().map(|lane| reader.first_of_lane(lane, count)).collect()
}

/// Returns the first `count` attempts of each lane, by priority and by waiting time.
pub(super) fn front(
    connection: &Connection,
    claim: &Claim,
    count: usize,
    now: Timestamp,
) -> Answer<Vec<Candidate>> {
    let reader = QueueReader { connection, claim, pools: distinct(&claim.pools), now };
    let mut found = Vec::new();
    for lane in Lane::ALL {
        found.extend(reader.first_by_priority(lane, count)?);
        found.extend(reader.first_by_rise(lane, count, Rise(i64::MAX))?);
    }
    let mut seen = HashSet::with_capacity(found.len());
    found.retain(|candidate| seen.insert(candidate.key));
    Ok(found)
}

struct QueueReader<'a> {
    connection: &'a Connection,
    claim: &'a Claim,
    pools: Vec<&'a str>,
    now: Timestamp,
}

impl QueueReader<'_> {
    fn first_of_lane(&self, lane: Lane, count: usize) -> Answer<Vec<Candidate>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut found = self.first_by_priority(lane, count)?;
        found.sort_unstable_by_key(Candidate::by_priority);
        found.truncate(count);
        if let Some(last) = found.last().filter(|_| found.len() == count) {
            let rank = Rank(i64::from(last.priority.get()));
            let reach = self.claim.aging.rise_of(rank, self.now);
            found.extend(self.first_by_rise(lane, count, reach)?);
            let mut seen = HashSet::with_capacity(found.len());
            found.retain(|candidate| seen.insert(candidate.key));
        }
        found.sort_unstable_by_key(Candidate::by_rank);
        found.truncate(count);
        Ok(found)
    }

    fn first_by_priority(&self, lane: Lane, count: usize) -> Answer<Vec<Candidate>> {
        self.first(sql!("claim_candidates"), lane, count, &[])
    }

    fn first_by_rise(&self, lane: Lane, count: usize, reach: Rise) -> Answer<Vec<Candidate>> {
        self.first(sql!("claim_aged"), lane, count, &[&reach])
    }

    fn first(
        &self,
        sql: &str,
        lane: Lane,
        count: usize,
        more: Params<'_>,
    ) -> Answer<Vec<Candidate>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = Vec::new();
        for pool in &self.pools {
            let params: Params<'_> =
                &[pool, &lane, &count, &self.now, &self.claim.node_name, &more];
            found.extend(statement.rows(params, |row| self.read(lane, row))?);
        }
        Ok(found)
    }

    fn read(&self, lane: Lane, row: &Row<'_>) -> Answer<Candidate> {
        let key = key_from(row)?;
        let digest: Option<[u8; KeyDigest::BYTES]> = row.get("limit_key")?;
        let most: Option<u32> = row.get("limit_max")?;
        let limit = digest
            .and_then(|digest| KeyDigest::from_bytes(&digest))
            .zip(most)
            .map(|(digest, most)| KeyLimit { digest, most });
        let priority =
            priority_from(row)?.ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
        Ok(Candidate {
            lane,
            priority,
            rank: self.claim.aging.rank(priority, Rise(row.get("rise")?), self.now),
            should_start_by: row.get("should_start_by")?,
            since: Timestamp::from_micros(row.get("since")?),
            is_own_priority: row.get("own_priority")?,
            key,
            tenant: TenantNo(row.get("tenant_no")?),
            fence: Fence(row.get("fence")?),
            crashes: row.get("crashes")?,
            prev: prev_from(row)?,
            limit,
        })
    }
}

/// Counts the queued attempts that would be claimed before a new attempt at this position, up to
/// `limit`.
pub(crate) fn waiting_ahead(
    connection: &Connection,
    pools: &[String],
    position: QueuePosition,
    limit: u32,
    now: Timestamp,
) -> Answer<u32> {
    let QueuePosition { lane, rank, aging } = position;
    let reach = aging.rise_of(rank, now);
    let mut higher = connection.prepare_cached(sql!("waiting_ahead_higher"))?;
    let mut risen = connection.prepare_cached(sql!("waiting_ahead_risen"))?;
    let mut count: u32 = 0;
    for pool in distinct(pools) {
        count = count.saturating_add(higher.value(&[&pool, &lane, &limit, &rank])?);
        if count >= limit {
            return Ok(limit);
        }
        count = count.saturating_add(risen.value(&[&pool, &lane, &limit, &rank, &reach])?);
    }
    Ok(count.min(limit))
}

fn distinct(pools: &[String]) -> Vec<&str> {
    let mut pools: Vec<&str> = pools.iter().map(String::as_str).collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}
