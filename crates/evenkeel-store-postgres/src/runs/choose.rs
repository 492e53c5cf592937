//! Who is claimed: the first of the queue by rank.
//!
//! What an attempt ranks at changes with time, but it is always the higher of two numbers that do
//! not: its priority, and what its waiting makes of it. So whoever is among the first is among the
//! first of one of two orders, each of which has its index. The second one matters only if the first
//! has given as many as are wanted, and then only as far as it reaches the last of them.

use std::cmp::Reverse;
use std::collections::HashSet;

use evenkeel_core::aging::{Rank, Rise};
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{RunKey, Timestamp};
use evenkeel_store::{Claim, StoreError};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::columns::{get, key, maybe_priority, time};
use crate::error::Tried;
use crate::pool::Connection;

const TAKE: &str = include_str!("../../queries/claim_take.sql");
const FIRST: &str = include_str!("../../queries/claim_rest.sql");

/// A row of the queue, locked.
pub(super) struct Candidate {
    place: String,
    lane: i16,
    priority: Priority,
    rank: Rank,
    should_start_by: i64,
    /// Since when it waits.
    pub(super) since: Timestamp,
    pub(super) key: RunKey,
    is_own_priority: bool,
    pub(super) tenant: i32,
    pub(super) fence: i32,
    pub(super) crashes: i16,
    pub(super) prev_at: Option<i64>,
    pub(super) prev_sequence: Option<i32>,
}

impl Candidate {
    /// The priority that its run was given, if it was.
    pub(super) fn own_priority(&self) -> Option<Priority> {
        self.is_own_priority.then_some(self.priority)
    }

    /// The lesser one goes first.
    fn by_rank(&self) -> impl Ord + use<> {
        let key = self.key;
        (self.lane, Reverse(self.rank), self.should_start_by, self.since, key.job_no, key)
    }

    fn by_priority(&self) -> impl Ord + use<> {
        let key = self.key;
        (self.lane, Reverse(self.priority), self.should_start_by, self.since, key.job_no, key)
    }
}

/// A claim that looks at the queue.
struct Look<'a> {
    connection: &'a Connection,
    claim: &'a Claim,
    pools: Vec<String>,
    literal: Option<i64>,
    now: Timestamp,
}

/// Takes out of the queue what a worker gets: of each lane what it has for itself, then the first.
/// They are in the order of dispatch.
pub(super) async fn choose(
    connection: &Connection,
    claim: &Claim,
    literal: Option<i64>,
    now: Timestamp,
) -> Tried<Vec<Candidate>> {
    let mut pools = claim.pools.clone();
    pools.sort_unstable();
    pools.dedup();
    let look = Look { connection, claim, pools, literal, now };
    let mut chosen = look.guaranteed().await?;
    let rest = claim.room - chosen.len();
    if rest == 0 {
        look.take(&chosen).await?;
    } else {
        // Sent together, and in this order since they are prepared: the second finds nothing that
        // the first has taken.
        connection.prepare_cached(TAKE).await?;
        connection.prepare_cached(FIRST).await?;
        let (_, first) = try_join(look.take(&chosen), look.first(rest)).await?;
        let first = look.with_aged(first, rest).await?;
        look.take(&first).await?;
        chosen.extend(first);
    }
    chosen.sort_unstable_by_key(Candidate::by_rank);
    Ok(chosen)
}

impl Look<'_> {
    /// The places that each lane has for itself, and who gets them.
    async fn guaranteed(&self) -> Tried<Vec<Candidate>> {
        let places = self.claim.guaranteed.map(|guaranteed| guaranteed.min(self.claim.room));
        if places == [0; Lane::ALL.len()] {
            return Ok(Vec::new());
        }
        let lanes = Lane::ALL.map(|lane| lane as i16).to_vec();
        let counts: Vec<i64> = places.iter().map(|places| sql_count(*places)).collect();
        let sql = include_str!("../../queries/claim_guaranteed.sql");
        let Self { claim, pools, literal, .. } = self;
        let rows =
            self.connection.rows(sql, &[pools, &lanes, &counts, literal, &claim.node_name]).await?;
        let mut found = self.read(&rows)?;
        found.sort_unstable_by_key(Candidate::by_priority);
        let mut by_lane = Lane::ALL.map(|_| Vec::new());
        for candidate in found {
            let lane = usize::try_from(candidate.lane).unwrap_or_default();
            if by_lane[lane].len() < places[lane] {
                by_lane[lane].push(candidate);
            }
        }
        let full = by_lane.iter().zip(places).filter(|(lane, places)| lane.len() == *places);
        let aged = self.aged(full.map(|(lane, _)| lane.as_slice())).await?;
        for candidate in aged {
            by_lane[usize::try_from(candidate.lane).unwrap_or_default()].push(candidate);
        }
        let firsts = by_lane.into_iter().zip(places);
        let firsts = firsts.flat_map(|(lane, places)| first_by_rank(lane, places));
        // If there is not room for all, lanes come in order.
        Ok(firsts.take(self.claim.room).collect())
    }

    /// The first by lane and priority.
    async fn first(&self, count: usize) -> Tried<Vec<Candidate>> {
        let Self { claim, pools, literal, .. } = self;
        let limit = sql_count(count);
        let rows = self.connection.rows(FIRST, &[pools, &limit, literal, &claim.node_name]).await?;
        let mut found = self.read(&rows)?;
        found.sort_unstable_by_key(Candidate::by_priority);
        found.truncate(count);
        Ok(found)
    }

    /// Of these, the first by lane and priority, those that stay when waiting counts, and those that
    /// come in their places. Only in the last lane may there be more than were found.
    async fn with_aged(&self, found: Vec<Candidate>, count: usize) -> Tried<Vec<Candidate>> {
        let Some(last) = found.last().filter(|_| found.len() == count) else { return Ok(found) };
        let lane = last.lane;
        let (mut earlier, mut last): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|candidate| candidate.lane < lane);
        let places = last.len();
        let aged = self.aged(std::iter::once(last.as_slice())).await?;
        last.extend(aged);
        earlier.extend(first_by_rank(last, places));
        Ok(earlier)
    }

    /// Of each lane as many as were found by priority, if their waiting brings them so far.
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
        let sql = include_str!("../../queries/claim_aged.sql");
        let Self { claim, pools, literal, .. } = self;
        let rows = self
            .connection
            .rows(sql, &[pools, &lanes, &counts, &reach, literal, &claim.node_name])
            .await?;
        self.read(&rows)
    }

    async fn take(&self, chosen: &[Candidate]) -> Tried<()> {
        if chosen.is_empty() {
            return Ok(());
        }
        let places: Vec<&str> = chosen.iter().map(|candidate| candidate.place.as_str()).collect();
        self.connection.change(TAKE, &[&places]).await?;
        Ok(())
    }

    fn read(&self, rows: &[Row]) -> Tried<Vec<Candidate>> {
        rows.iter().map(|row| self.read_one(row)).collect()
    }

    fn read_one(&self, row: &Row) -> Tried<Candidate> {
        let key = key(row, 6)?;
        let priority = maybe_priority(row, 2)?
            .ok_or_else(|| StoreError::corrupt(key.execution_id(), "priority", "none"))?;
        Ok(Candidate {
            place: get(row, 0)?,
            lane: get(row, 1)?,
            priority,
            rank: self.claim.aging.rank(priority, Rise(get(row, 3)?), self.now),
            should_start_by: get(row, 4)?,
            since: time(row, 5)?,
            key,
            is_own_priority: get(row, 10)?,
            tenant: get(row, 11)?,
            fence: get(row, 12)?,
            crashes: get(row, 13)?,
            prev_at: get(row, 14)?,
            prev_sequence: get(row, 15)?,
        })
    }
}

/// The first of those that were found by either order, of one lane.
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
