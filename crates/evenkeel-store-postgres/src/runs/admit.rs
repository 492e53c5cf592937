//! Who of those whose turn it is may start: limits of how many run at once.
//!
//! A transaction that gives out places of a limit has its lock, so that two never count the same ones
//! free. It tries for the lock and does not wait: whoever has it is quick, and what is under the limit
//! stays where it is for so long.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use evenkeel_core::limit::{Ledger, Limit, LimitKey, LimitScope, Limits, Verdict};
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, TenantNo};

use super::choose::Candidate;
use crate::columns::{KeyColumns, count, get};
use crate::error::Tried;
use crate::pool::Connection;

/// The places that a claim gives out.
pub(super) struct Admission<'a> {
    connection: &'a Connection,
    limits: &'a Limits,
    ledger: Ledger,
    swept: BTreeSet<LimitKey>,
    /// Limits whose lock was got before anybody was counted.
    locked: BTreeSet<LimitKey>,
    /// Who starts under which limit. Written at the end: until then all that is stored is others'.
    places: Vec<(LimitKey, AttemptKey)>,
    /// What stays where it is.
    pub(super) left: HashSet<AttemptKey>,
    /// Somebody else has the lock of a tenant's or lane's limit.
    pub(super) contended: bool,
}

/// Who found places.
pub(super) struct Admitted {
    pub(super) admitted: Vec<Candidate>,
    /// So many went to waiting rooms.
    pub(super) parked: usize,
    /// Some stay for a key that somebody else is just giving out places of. Those behind them may be
    /// under none; behind those of a tenant or lane there are mostly more of it.
    pub(super) may_be_others: bool,
}

impl<'a> Admission<'a> {
    pub(super) fn new(connection: &'a Connection, limits: &'a Limits) -> Self {
        Self {
            connection,
            limits,
            ledger: Ledger::default(),
            swept: BTreeSet::new(),
            locked: BTreeSet::new(),
            places: Vec::new(),
            left: HashSet::new(),
            contended: false,
        }
    }

    /// Is it under any limit?
    pub(super) fn is_limited(&self, candidate: &Candidate) -> bool {
        let (tenant, lane) = owner_and_lane(candidate);
        candidate.limit.is_some() || self.limits.bind(tenant, lane)
    }

    fn limits_on(&self, candidate: &Candidate) -> Vec<Limit> {
        candidate.limits_under(self.limits)
    }

    /// Tries for the locks of the tenants and lanes of these, whose rows nobody has locked yet.
    pub(super) async fn prepare(&mut self, first: &[Candidate]) -> Tried<()> {
        let limits = first.iter().flat_map(|candidate| self.limits_on(candidate));
        let shared = limits.map(|limit| limit.key).filter(|key| is_shared(*key));
        let shared: BTreeSet<LimitKey> = shared.collect();
        let locked = self.lock(&Vec::from_iter(shared)).await?;
        self.locked.extend(locked);
        Ok(())
    }

    /// Is somebody else just giving out places of its tenant or lane?
    pub(super) fn is_for_others(&self, candidate: &Candidate) -> bool {
        let is_lost = |key| self.ledger.knows(key) && self.ledger.running(key).is_none();
        let limits = self.limits_on(candidate);
        limits.iter().any(|limit| is_shared(limit.key) && is_lost(limit.key))
    }

    /// Those that find places of all their limits, in this order; the others are parked.
    pub(super) async fn admit(&mut self, found: Vec<Candidate>) -> Tried<Admitted> {
        let limits: Vec<Vec<Limit>> =
            found.iter().map(|candidate| self.limits_on(candidate)).collect();
        self.count(&limits).await?;
        let mut admitted = Vec::with_capacity(found.len());
        let (mut parked, mut may_be_others) = (Vec::new(), false);
        for (mut candidate, limits) in found.into_iter().zip(limits) {
            match self.ledger.admit(&limits) {
                Verdict::Start => {
                    candidate.places = limits.iter().map(|limit| limit.key).collect();
                    let places = candidate.places.iter().map(|limit| (*limit, candidate.key));
                    self.places.extend(places);
                    admitted.push(candidate);
                }
                Verdict::Park(full) => parked.push((candidate.key, full)),
                Verdict::Leave => {
                    may_be_others |= !self.is_for_others(&candidate);
                    self.left.insert(candidate.key);
                }
            }
        }
        self.park(&parked).await?;
        Ok(Admitted { admitted, parked: parked.len(), may_be_others })
    }

    /// Parks those of these that could not start as things are.
    pub(super) async fn clear(&self, front: &[Candidate]) -> Tried<()> {
        let is_full = |limit: &Limit| self.ledger.running(limit.key) >= Some(limit.most);
        let parked: Vec<(AttemptKey, Limit)> = front
            .iter()
            .filter_map(|candidate| {
                let full = self.limits_on(candidate).into_iter().find(is_full)?;
                Some((candidate.key, full))
            })
            .collect();
        self.park(&parked).await
    }

    /// Finds out how many run under limits that are new, and looks closer where they seem too many.
    async fn count(&mut self, limits: &[Vec<Limit>]) -> Tried<()> {
        let mut wanted: BTreeMap<LimitKey, (u32, u32)> = BTreeMap::new();
        for limit in limits.iter().flatten() {
            let (demand, least) = wanted.entry(limit.key).or_insert((0, u32::MAX));
            *demand += 1;
            *least = limit.most.min(*least);
        }
        let unknown = wanted.keys().copied().filter(|key| !self.ledger.knows(*key));
        let (mut locked, new): (Vec<_>, Vec<_>) =
            unknown.partition(|key| self.locked.contains(key));
        locked.extend(self.lock(&new).await?);
        self.note(&locked).await?;
        let seems_full = |(key, (demand, least)): (&LimitKey, &(u32, u32))| {
            let running = self.ledger.running(*key)?;
            (running.saturating_add(*demand) > *least && !self.swept.contains(key)).then_some(*key)
        };
        let full: Vec<LimitKey> = wanted.iter().filter_map(seems_full).collect();
        if !full.is_empty() {
            let sql = sql!("claim_permit_sweep");
            self.connection.change(sql, &[&key_bytes(&full)]).await?;
            self.swept.extend(&full);
            self.note(&full).await?;
        }
        Ok(())
    }

    /// Those of which this transaction may give out places.
    async fn lock(&mut self, keys: &[LimitKey]) -> Tried<Vec<LimitKey>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let sql = sql!("claim_permit_lock");
        let mut locked = Vec::with_capacity(keys.len());
        for row in self.connection.rows(sql, &[&key_bytes(keys)]).await? {
            let Some(key) = nth(keys, get(&row, 0)?) else { continue };
            if get(&row, 1)? {
                locked.push(key);
            } else {
                self.ledger.note(key, None);
                self.contended |= is_shared(key);
            }
        }
        Ok(locked)
    }

    async fn note(&mut self, keys: &[LimitKey]) -> Tried<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let sql = sql!("claim_permit_count");
        for row in self.connection.rows(sql, &[&key_bytes(keys)]).await? {
            let Some(key) = nth(keys, get(&row, 0)?) else { continue };
            let own = self.places.iter().filter(|(limit, _)| *limit == key).count();
            let running = count(&row, 1)?.saturating_add(own as u64);
            self.ledger.note(key, Some(u32::try_from(running).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    async fn park(&self, parked: &[(AttemptKey, Limit)]) -> Tried<()> {
        if parked.is_empty() {
            return Ok(());
        }
        let keys: KeyColumns = parked.iter().map(|(key, _)| *key).collect();
        let rooms: Vec<String> = parked.iter().map(|(_, full)| full.key.room()).collect();
        let most: Vec<i32> = parked.iter().map(|(_, full)| full.most.cast_signed()).collect();
        let sql = sql!("claim_park");
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
        self.connection
            .change(sql, &[scheduled_at, job_no, sequence, attempt, &rooms, &most])
            .await?;
        Ok(())
    }

    /// Writes down who has places.
    pub(super) async fn write(&self) -> Tried<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let limits: Vec<&[u8]> = self.places.iter().map(|(limit, _)| limit.as_bytes()).collect();
        let keys: KeyColumns = self.places.iter().map(|(_, key)| *key).collect();
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
        let sql = sql!("claim_permit_take");
        self.connection.change(sql, &[&limits, scheduled_at, job_no, sequence, attempt]).await?;
        Ok(())
    }
}

/// Is it a limit of a tenant or a lane?
fn is_shared(key: LimitKey) -> bool {
    key.scope() != LimitScope::Key
}

impl Candidate {
    /// The limits that it is under if these hold, the narrowest first.
    pub(crate) fn limits_under(&self, limits: &Limits) -> Vec<Limit> {
        let (tenant, lane) = owner_and_lane(self);
        limits.on(tenant, lane, self.limit)
    }
}

fn owner_and_lane(candidate: &Candidate) -> (TenantNo, Lane) {
    let lane = usize::try_from(candidate.lane).ok().and_then(|lane| Lane::ALL.get(lane).copied());
    (TenantNo(candidate.tenant), lane.unwrap_or_default())
}

/// As they are stored.
pub(crate) fn key_bytes(keys: &[LimitKey]) -> Vec<&[u8]> {
    keys.iter().map(LimitKey::as_bytes).collect()
}

/// The one with this number, counted from 1.
pub(crate) fn nth(keys: &[LimitKey], number: i64) -> Option<LimitKey> {
    keys.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}
