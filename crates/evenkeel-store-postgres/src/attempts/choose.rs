//! Chooses the attempts that a claim takes from the queue: those with the highest rank.
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
use evenkeel_core::limit::{KeyDigest, KeyLimit, LimitKey};
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{Claim, StoreError};
use futures::future::try_join;
use tokio_postgres::Row;

use super::permits::{Admitted, Permits};
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, get, key_at, maybe_priority, time};

/// Maximum number of rounds of one claim. Each further round looks for attempts to replace the
/// attempts that got no permit.
const ROUNDS: usize = 3;
/// Number of attempts per lane and pool that are checked for full concurrency limits after a round
/// of a claim.
const CLEARED: i64 = 1_000;
/// Number of attempts that a claim first reads without locking them, if another node held the lock
/// of a limit at the previous claim.
const PEEKED: usize = 50;

/// A row of the queue that this claim has locked.
pub(crate) struct Candidate {
    ctid: String,
    pub(crate) lane: i16,
    priority: Priority,
    rank: Rank,
    should_start_by: i64,
    /// The earliest time at which the attempt could have been claimed.
    pub(super) since: Timestamp,
    pub(crate) key: AttemptKey,
    is_own_priority: bool,
    pub(super) tenant: i32,
    pub(super) fence: i32,
    pub(super) crashes: i16,
    pub(super) prev_at: Option<i64>,
    pub(super) prev_sequence: Option<i32>,
    /// The concurrency limit of the attempt's job.
    pub(super) limit: Option<KeyLimit>,
    /// The limits of which the attempt holds a permit.
    pub(super) permits: Vec<LimitKey>,
}

impl Candidate {
    /// Returns the priority of the run, or `None` if the run has the priority of its job.
    pub(super) fn own_priority(&self) -> Option<Priority> {
        self.is_own_priority.then_some(self.priority)
    }

    /// Sort key of the dispatch order.
    pub(crate) fn by_rank(&self) -> impl Ord + use<> {
        let key = self.key;
        (self.lane, Reverse(self.rank), self.should_start_by, self.since, key.job_no, key)
    }

    fn by_priority(&self) -> impl Ord + use<> {
        let key = self.key;
        (self.lane, Reverse(self.priority), self.should_start_by, self.since, key.job_no, key)
    }
}

/// State of a claim while it reads the queue.
struct Look<'a> {
    connection: &'a Connection,
    claim: &'a Claim,
    pools: Vec<String>,
    literal: Option<i64>,
    now: Timestamp,
    permits: Permits<'a>,
    /// How many further attempts the claim may take.
    capacity: usize,
    guaranteed: [usize; Lane::ALL.len()],
}

pub(super) struct Chosen {
    /// The claimed attempts in dispatch order.
    pub(super) taken: Vec<Candidate>,
    /// True if concurrency limits blocked attempts and the claim got fewer attempts than requested.
    pub(super) again: bool,
    /// True if another transaction was granting permits of a tenant or lane limit.
    pub(super) contended: bool,
}

/// Deletes the claimed attempts from the queue: first the guaranteed number of each lane, then the
/// highest-ranked attempts of all lanes. With `peeks`, the claim first checks, without locking
/// rows, whether another transaction is granting permits to all attempts at the front of the queue.
pub(super) async fn choose(
    connection: &Connection,
    claim: &Claim,
    peeks: bool,
    literal: Option<i64>,
    now: Timestamp,
) -> Tried<Chosen> {
    let mut pools = claim.pools.clone();
    pools.sort_unstable();
    pools.dedup();
    let permits = Permits::new(connection, &claim.limits);
    let (capacity, guaranteed) = (claim.capacity, claim.guaranteed);
    let mut look = Look { connection, claim, pools, literal, now, permits, capacity, guaranteed };
    let mut taken = Vec::new();
    let mut again = false;
    if peeks && look.is_all_deferred().await? {
        return Ok(Chosen { taken, again: true, contended: true });
    }
    for round in 0..ROUNDS {
        let found = look.round().await?;
        again = found.stopped > 0;
        let continues = found.limited_count > 0 || found.may_be_others || !found.taken.is_empty();
        for candidate in &found.taken {
            let lane = usize::try_from(candidate.lane).unwrap_or_default();
            look.guaranteed[lane] = look.guaranteed[lane].saturating_sub(1);
        }
        look.capacity -= found.taken.len();
        taken.extend(found.taken);
        if !again || look.capacity == 0 {
            again = false;
            break;
        }
        // A further round of the claim would find nothing, because another transaction is granting
        // the permits of the remaining attempts. The claim ends now and unlocks its rows, because
        // the transaction that grants permits skips locked rows.
        if !continues {
            break;
        }
        if found.limited_count > 0 && round + 1 < ROUNDS {
            look.clear_front().await?;
        }
    }
    look.permits.write().await?;
    taken.sort_unstable_by_key(Candidate::by_rank);
    Ok(Chosen { taken, again, contended: look.permits.contended })
}

/// The result of one round of a claim.
struct Round {
    taken: Vec<Candidate>,
    /// Number of attempts that did not get all their permits.
    stopped: usize,
    /// Number of attempts without permits that moved to the queues of concurrency limits.
    limited_count: usize,
    /// True if attempts that can start may be queued behind the attempts that got no permit.
    may_be_others: bool,
}

impl Look<'_> {
    /// Takes attempts until the remaining capacity of the claim is used.
    async fn round(&mut self) -> Tried<Round> {
        let guaranteed = self.guaranteed().await?;
        // Attempts with concurrency limits are taken later, together with all attempts that need
        // permits of the same limits.
        let (limited, mut taken): (Vec<_>, Vec<_>) =
            guaranteed.into_iter().partition(|candidate| self.permits.is_limited(candidate));
        let rest = self.capacity - taken.len();
        if rest == limited.len() {
            self.take(&taken).await?;
            let mut round = self.admit(limited, rest).await?;
            round.taken.extend(taken);
            return Ok(round);
        }
        // Preparing `claim_take` and `claim_rest` first makes sure that both are sent together and
        // in this order. `claim_rest` must not find rows that `claim_take` has deleted.
        self.connection.prepare_cached(sql!("claim_take")).await?;
        self.connection.prepare_cached(sql!("claim_rest")).await?;
        // The search also finds attempts that must stay in the queue, so it reads more rows.
        let count = rest + self.permits.left.len();
        let (_, first) = try_join(self.take(&taken), self.first(count)).await?;
        let mut first = self.with_aged(first, count).await?;
        if !limited.is_empty() || !self.permits.left.is_empty() {
            let known: HashSet<AttemptKey> =
                limited.iter().map(|candidate| candidate.key).collect();
            first.retain(|candidate| {
                !known.contains(&candidate.key) && !self.permits.left.contains(&candidate.key)
            });
            first.sort_unstable_by_key(Candidate::by_rank);
            first.truncate(rest - limited.len());
            first.extend(limited);
        }
        let round = self.admit(first, rest).await?;
        taken.extend(round.taken);
        Ok(Round { taken, ..round })
    }

    /// Takes the attempts that get a permit of each of their limits.
    async fn admit(&mut self, mut found: Vec<Candidate>, capacity: usize) -> Tried<Round> {
        if !found.iter().any(|candidate| self.permits.is_limited(candidate)) {
            self.take(&found).await?;
            return Ok(Round { taken: found, stopped: 0, limited_count: 0, may_be_others: false });
        }
        let asked = found.len();
        found.sort_unstable_by_key(Candidate::by_rank);
        found.truncate(capacity);
        let Admitted { admitted: taken, limited_count, may_be_others } =
            self.permits.admit(found).await?;
        self.take(&taken).await?;
        Ok(Round { stopped: asked - taken.len(), taken, limited_count, may_be_others })
    }

    /// Moves blocked attempts from the front of the queue to the queues of their limits, because
    /// attempts that could start may be queued behind them.
    async fn clear_front(&mut self) -> Tried<()> {
        let front = self.front(CLEARED).await?;
        self.permits.clear(&front).await
    }

    /// True if another transaction is granting permits to all attempts at the front of the queue.
    /// If another transaction is granting all these permits, the claim locks no rows, so that the
    /// other transaction can take the attempts.
    async fn is_all_deferred(&mut self) -> Tried<bool> {
        let count = self.capacity.max(PEEKED);
        let mut front = self.front(sql_count(count)).await?;
        front.sort_unstable_by_key(Candidate::by_rank);
        front.truncate(count);
        self.permits.prepare(&front[..front.len().min(self.capacity)]).await?;
        let is_deferred = |candidate: &&Candidate| self.permits.is_deferred(candidate);
        let left: Vec<AttemptKey> =
            front.iter().filter(is_deferred).map(|candidate| candidate.key).collect();
        let all = !front.is_empty() && left.len() == front.len();
        // The first round skips attempts whose permits another transaction is granting.
        self.permits.left.extend(left);
        Ok(all)
    }

    /// Reads the first attempts of each lane of each pool, by priority and by waiting time, without
    /// locks.
    async fn front(&self, count: i64) -> Tried<Vec<Candidate>> {
        let Self { claim, pools, literal, .. } = self;
        let params: Params<'_> = &[pools, &count, literal, &claim.node_name];
        let mut front = self.rows(sql!("claim_front"), params).await?;
        let mut seen = HashSet::with_capacity(front.len());
        front.retain(|candidate| seen.insert(candidate.key));
        Ok(front)
    }

    /// Chooses the guaranteed number of attempts of each lane.
    async fn guaranteed(&self) -> Tried<Vec<Candidate>> {
        let wanted = self.guaranteed.map(|guaranteed| guaranteed.min(self.capacity));
        if wanted == [0; Lane::ALL.len()] {
            return Ok(Vec::new());
        }
        let lanes = Lane::ALL.map(|lane| lane as i16).to_vec();
        // The search also finds attempts that must stay in the queue, so it reads more rows.
        let stays = self.permits.left.len();
        let asked = wanted.map(|count| if count == 0 { 0 } else { count + stays });
        let counts = column(asked, sql_count);
        let Self { claim, pools, literal, .. } = self;
        let params: Params<'_> = &[pools, &lanes, &counts, literal, &claim.node_name];
        let mut found = self.rows(sql!("claim_guaranteed"), params).await?;
        found.sort_unstable_by_key(Candidate::by_priority);
        let mut by_lane = Lane::ALL.map(|_| Vec::new());
        for candidate in found {
            let lane = usize::try_from(candidate.lane).unwrap_or_default();
            if by_lane[lane].len() < asked[lane] {
                by_lane[lane].push(candidate);
            }
        }
        let full = by_lane.iter().zip(asked).filter(|(lane, asked)| lane.len() == *asked);
        let aged = self.aged(full.map(|(lane, _)| lane.as_slice())).await?;
        for candidate in aged {
            by_lane[usize::try_from(candidate.lane).unwrap_or_default()].push(candidate);
        }
        for lane in &mut by_lane {
            lane.retain(|candidate| !self.permits.left.contains(&candidate.key));
        }
        // Capacity that one lane leaves unused is available for the guaranteed attempts of later
        // lanes.
        let mut chosen = Vec::new();
        for (lane, count) in by_lane.into_iter().zip(wanted) {
            chosen.extend(first_by_rank(lane, count.min(self.capacity - chosen.len())));
        }
        Ok(chosen)
    }

    /// Reads and locks the first attempts by lane and priority.
    async fn first(&self, count: usize) -> Tried<Vec<Candidate>> {
        let Self { claim, pools, literal, .. } = self;
        let params: Params<'_> = &[pools, &sql_count(count), literal, &claim.node_name];
        let mut found = self.rows(sql!("claim_rest"), params).await?;
        found.sort_unstable_by_key(Candidate::by_priority);
        found.truncate(count);
        Ok(found)
    }

    /// Replaces attempts of `found` by attempts that rank higher because of their waiting time.
    /// Only the last lane of `found` can have attempts that were not read.
    async fn with_aged(&self, found: Vec<Candidate>, count: usize) -> Tried<Vec<Candidate>> {
        let Some(last) = found.last().filter(|_| found.len() == count) else { return Ok(found) };
        let lane = last.lane;
        let (mut earlier, mut last): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|candidate| candidate.lane < lane);
        let count = last.len();
        let aged = self.aged(std::iter::once(last.as_slice())).await?;
        last.extend(aged);
        earlier.extend(first_by_rank(last, count));
        Ok(earlier)
    }

    /// Reads, for each lane, the attempts whose waiting time ranks them before the last attempt of
    /// `full`, at most as many as `full` has.
    async fn aged<'c>(&self, full: impl Iterator<Item = &'c [Candidate]>) -> Tried<Vec<Candidate>> {
        let (mut lanes, mut counts, mut reach) = (Vec::new(), Vec::new(), Vec::new());
        for found in full {
            let Some(last) = found.last() else { continue };
            let rank = Rank(i64::from(last.priority.get()));
            lanes.push(last.lane);
            counts.push(sql_count(found.len()));
            reach.push(self.claim.aging.rise_of(rank, self.now).0);
        }
        if lanes.is_empty() {
            return Ok(Vec::new());
        }
        let Self { claim, pools, literal, .. } = self;
        let params: Params<'_> = &[pools, &lanes, &counts, &reach, literal, &claim.node_name];
        self.rows(sql!("claim_aged"), params).await
    }

    async fn take(&self, chosen: &[Candidate]) -> Tried<()> {
        if chosen.is_empty() {
            return Ok(());
        }
        let rows = column(chosen, |candidate| candidate.ctid.as_str());
        self.connection.change(sql!("claim_take"), &[&rows]).await?;
        Ok(())
    }

    async fn rows(&self, sql: &str, params: Params<'_>) -> Tried<Vec<Candidate>> {
        let rows = self.connection.rows(sql, params).await?;
        rows.iter().map(|row| Candidate::read(row, &self.claim.aging, self.now)).collect()
    }
}

impl Candidate {
    /// Reads the columns of the SQL fragment `candidate_columns`, which must be the first columns
    /// of the row.
    pub(crate) fn read(row: &Row, aging: &Aging, now: Timestamp) -> Tried<Self> {
        let key = key_at(row, 6)?;
        let priority =
            maybe_priority(row, 2)?.ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
        let digest = get::<Option<&[u8]>>(row, 16)?.and_then(KeyDigest::from_bytes);
        let most = get::<Option<i32>>(row, 17)?.map(i32::cast_unsigned);
        Ok(Self {
            ctid: get(row, 0)?,
            lane: get(row, 1)?,
            priority,
            rank: aging.rank(priority, Rise(get(row, 3)?), now),
            should_start_by: get(row, 4)?,
            since: time(row, 5)?,
            key,
            is_own_priority: get(row, 10)?,
            tenant: get(row, 11)?,
            fence: get(row, 12)?,
            crashes: get(row, 13)?,
            prev_at: get(row, 14)?,
            prev_sequence: get(row, 15)?,
            limit: digest.zip(most).map(|(digest, most)| KeyLimit { digest, most }),
            permits: Vec::new(),
        })
    }
}

/// Returns the first `count` attempts of one lane by rank.
fn first_by_rank(mut found: Vec<Candidate>, count: usize) -> Vec<Candidate> {
    let mut seen = HashSet::with_capacity(found.len());
    found.retain(|candidate| seen.insert(candidate.key));
    found.sort_unstable_by_key(Candidate::by_rank);
    found.truncate(count);
    found
}

fn sql_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
