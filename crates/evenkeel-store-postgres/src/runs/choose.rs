//! Who is claimed: the first of the queue by rank.
//!
//! What an attempt ranks at changes with time, but it is always the higher of two numbers that do
//! not: its priority, and what its waiting makes of it. So whoever is among the first is among the
//! first of one of two orders, each of which has its index. The second one matters only if the first
//! has given as many as are wanted, and then only as far as it reaches the last of them.

use std::cmp::Reverse;
use std::collections::HashSet;

use evenkeel_core::aging::{Aging, Rank, Rise};
use evenkeel_core::limit::{KeyDigest, KeyLimit, LimitKey};
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{Claim, StoreError};
use futures::future::try_join;
use tokio_postgres::Row;

use super::admit::{Admission, Admitted};
use crate::columns::{get, key, maybe_priority, time};
use crate::error::Tried;
use crate::pool::Connection;

/// So often others have their turn in the places of those that found none.
const ROUNDS: usize = 3;
/// So many of each lane of each pool are looked at for more that would find none.
const CLEARED: i64 = 1_000;
/// So many are looked at before any is locked, if others were quicker the last time.
const PEEKED: usize = 50;

/// A row of the queue, locked.
pub(crate) struct Candidate {
    place: String,
    pub(crate) lane: i16,
    priority: Priority,
    rank: Rank,
    should_start_by: i64,
    /// Since when it waits.
    pub(super) since: Timestamp,
    pub(crate) key: AttemptKey,
    is_own_priority: bool,
    pub(super) tenant: i32,
    pub(super) fence: i32,
    pub(super) crashes: i16,
    pub(super) prev_at: Option<i64>,
    pub(super) prev_sequence: Option<i32>,
    /// What its job says about how many may run.
    pub(super) limit: Option<KeyLimit>,
    /// The limits of which it has a place.
    pub(super) places: Vec<LimitKey>,
}

impl Candidate {
    /// The priority that its run was given, if it was.
    pub(super) fn own_priority(&self) -> Option<Priority> {
        self.is_own_priority.then_some(self.priority)
    }

    /// The lesser one goes first.
    pub(crate) fn by_rank(&self) -> impl Ord + use<> {
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
    admission: Admission<'a>,
    /// What is to be had yet.
    room: usize,
    guaranteed: [usize; Lane::ALL.len()],
}

/// Who starts.
pub(super) struct Chosen {
    /// In the order of dispatch.
    pub(super) taken: Vec<Candidate>,
    /// Limits stood in the way, and the search for others was ended.
    pub(super) again: bool,
    /// Somebody else was just giving out places of a tenant or a lane.
    pub(super) contended: bool,
}

/// Takes out of the queue what a worker gets: of each lane what it has for itself, then the first.
/// Whoever `peeks` looks before it locks anything whether it is all for others.
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
    let admission = Admission::new(connection, &claim.limits);
    let (room, guaranteed) = (claim.capacity, claim.guaranteed);
    let mut look = Look { connection, claim, pools, literal, now, admission, room, guaranteed };
    let mut taken = Vec::new();
    let mut again = false;
    if peeks && look.is_all_for_others().await? {
        return Ok(Chosen { taken, again: true, contended: true });
    }
    for round in 0..ROUNDS {
        let found = look.round().await?;
        again = found.stopped > 0;
        let goes_on = found.parked > 0 || found.may_be_others || !found.taken.is_empty();
        for candidate in &found.taken {
            let lane = usize::try_from(candidate.lane).unwrap_or_default();
            look.guaranteed[lane] = look.guaranteed[lane].saturating_sub(1);
        }
        look.room -= found.taken.len();
        taken.extend(found.taken);
        if !again || look.room == 0 {
            again = false;
            break;
        }
        // Whoever gives out the places is quick, and passes over what is locked here.
        if !goes_on {
            break;
        }
        if found.parked > 0 && round + 1 < ROUNDS {
            look.clear_front().await?;
        }
    }
    look.admission.write().await?;
    taken.sort_unstable_by_key(Candidate::by_rank);
    Ok(Chosen { taken, again, contended: look.admission.contended })
}

/// What a round has found.
struct Round {
    taken: Vec<Candidate>,
    /// So many found no place,
    stopped: usize,
    /// so many of them went to waiting rooms,
    parked: usize,
    /// and behind the others there may be some that could start.
    may_be_others: bool,
}

impl Look<'_> {
    /// Who gets what is to be had, and how many others would have.
    async fn round(&mut self) -> Tried<Round> {
        let guaranteed = self.guaranteed().await?;
        // Those under limits are not taken before all are known who want the same places.
        let (limited, mut taken): (Vec<_>, Vec<_>) =
            guaranteed.into_iter().partition(|candidate| self.admission.is_limited(candidate));
        let rest = self.room - taken.len();
        if rest == limited.len() {
            self.take(&taken).await?;
            let mut round = self.admit(limited, rest).await?;
            round.taken.extend(taken);
            return Ok(round);
        }
        // Sent together, and in this order since they are prepared: the second finds nothing that
        // the first has taken.
        self.connection.prepare_cached(sql!("claim_take")).await?;
        self.connection.prepare_cached(sql!("claim_rest")).await?;
        // What stays where it is, is found again.
        let count = rest + self.admission.left.len();
        let (_, first) = try_join(self.take(&taken), self.first(count)).await?;
        let mut first = self.with_aged(first, count).await?;
        if !limited.is_empty() || !self.admission.left.is_empty() {
            let known: HashSet<AttemptKey> =
                limited.iter().map(|candidate| candidate.key).collect();
            first.retain(|candidate| {
                !known.contains(&candidate.key) && !self.admission.left.contains(&candidate.key)
            });
            first.sort_unstable_by_key(Candidate::by_rank);
            first.truncate(rest - limited.len());
            first.extend(limited);
        }
        let round = self.admit(first, rest).await?;
        taken.extend(round.taken);
        Ok(Round { taken, ..round })
    }

    /// Takes those that find places of all their limits.
    async fn admit(&mut self, mut found: Vec<Candidate>, room: usize) -> Tried<Round> {
        if !found.iter().any(|candidate| self.admission.is_limited(candidate)) {
            self.take(&found).await?;
            return Ok(Round { taken: found, stopped: 0, parked: 0, may_be_others: false });
        }
        let asked = found.len();
        found.sort_unstable_by_key(Candidate::by_rank);
        found.truncate(room);
        let Admitted { admitted: taken, parked, may_be_others } =
            self.admission.admit(found).await?;
        self.take(&taken).await?;
        Ok(Round { stopped: asked - taken.len(), taken, parked, may_be_others })
    }

    /// Many that find no places may be in front of those that could start.
    async fn clear_front(&mut self) -> Tried<()> {
        let front = self.front(CLEARED).await?;
        self.admission.clear(&front).await
    }

    /// Is somebody else just giving out places to all that are first? Then nothing is locked that they
    /// may want to take.
    async fn is_all_for_others(&mut self) -> Tried<bool> {
        let count = self.room.max(PEEKED);
        let mut front = self.front(sql_count(count)).await?;
        front.sort_unstable_by_key(Candidate::by_rank);
        front.truncate(count);
        self.admission.prepare(&front[..front.len().min(self.room)]).await?;
        let is_for_others = |candidate: &&Candidate| self.admission.is_for_others(candidate);
        let left: Vec<AttemptKey> =
            front.iter().filter(is_for_others).map(|candidate| candidate.key).collect();
        let all = !front.is_empty() && left.len() == front.len();
        // The first round looks past them.
        self.admission.left.extend(left);
        Ok(all)
    }

    /// The first of each lane of each pool, by priority and by what they have waited.
    async fn front(&self, count: i64) -> Tried<Vec<Candidate>> {
        let sql = sql!("claim_front");
        let Self { claim, pools, literal, .. } = self;
        let rows = self.connection.rows(sql, &[pools, &count, literal, &claim.node_name]).await?;
        let mut front = self.read(&rows)?;
        let mut seen = HashSet::with_capacity(front.len());
        front.retain(|candidate| seen.insert(candidate.key));
        Ok(front)
    }

    /// The places that each lane has for itself, and who gets them.
    async fn guaranteed(&self) -> Tried<Vec<Candidate>> {
        let places = self.guaranteed.map(|guaranteed| guaranteed.min(self.room));
        if places == [0; Lane::ALL.len()] {
            return Ok(Vec::new());
        }
        let lanes = Lane::ALL.map(|lane| lane as i16).to_vec();
        // What stays where it is, is found again.
        let stays = self.admission.left.len();
        let asked = places.map(|places| if places == 0 { 0 } else { places + stays });
        let counts: Vec<i64> = asked.iter().map(|asked| sql_count(*asked)).collect();
        let sql = sql!("claim_guaranteed");
        let Self { claim, pools, literal, .. } = self;
        let rows =
            self.connection.rows(sql, &[pools, &lanes, &counts, literal, &claim.node_name]).await?;
        let mut found = self.read(&rows)?;
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
            lane.retain(|candidate| !self.admission.left.contains(&candidate.key));
        }
        // What a lane does not need is left for the guarantees of later ones.
        let mut chosen = Vec::new();
        for (lane, places) in by_lane.into_iter().zip(places) {
            chosen.extend(first_by_rank(lane, places.min(self.room - chosen.len())));
        }
        Ok(chosen)
    }

    /// The first by lane and priority.
    async fn first(&self, count: usize) -> Tried<Vec<Candidate>> {
        let Self { claim, pools, literal, .. } = self;
        let limit = sql_count(count);
        let rows = self
            .connection
            .rows(sql!("claim_rest"), &[pools, &limit, literal, &claim.node_name])
            .await?;
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
        let sql = sql!("claim_aged");
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
        self.connection.change(sql!("claim_take"), &[&places]).await?;
        Ok(())
    }

    fn read(&self, rows: &[Row]) -> Tried<Vec<Candidate>> {
        rows.iter().map(|row| Candidate::read(row, &self.claim.aging, self.now)).collect()
    }
}

impl Candidate {
    /// The row of the queue in the first 18 columns.
    pub(crate) fn read(row: &Row, aging: &Aging, now: Timestamp) -> Tried<Self> {
        let key = key(row, 6)?;
        let priority =
            maybe_priority(row, 2)?.ok_or_else(|| StoreError::corrupt(key, "priority", "none"))?;
        let digest = get::<Option<&[u8]>>(row, 16)?.and_then(KeyDigest::from_bytes);
        let most = get::<Option<i32>>(row, 17)?.map(i32::cast_unsigned);
        Ok(Self {
            place: get(row, 0)?,
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
            places: Vec::new(),
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
