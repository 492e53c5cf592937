//! Permits of concurrency limits decide which of the claimable attempts may start.
//!
//! A transaction that grants permits of a limit holds the limit's advisory lock, so that two
//! transactions never count the same permit as free. A transaction tries to get the advisory lock
//! of a limit and never waits for it. The transaction that holds the advisory lock of a limit
//! commits soon, and until then the attempts under the limit stay in the queue.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use evenkeel_core::limit::{Admission, Limit, LimitKey, LimitScope, Limits, PermitCounts};
use evenkeel_core::order::Lane;
use evenkeel_core::{AttemptKey, TenantNo};

use super::choose::Candidate;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, count, get};

/// The permits of concurrency limits that one claim grants.
pub(super) struct Permits<'a> {
    connection: &'a Connection,
    limits: &'a Limits,
    ledger: PermitCounts,
    swept: BTreeSet<LimitKey>,
    /// Limits whose advisory lock `prepare` has obtained.
    locked: BTreeSet<LimitKey>,
    /// Permits that this claim has granted. The permits of a claim are stored at its end, so all
    /// stored permits are from earlier claims.
    granted: Vec<(LimitKey, AttemptKey)>,
    /// Attempts that stay in the queue because of their limits.
    pub(super) left: HashSet<AttemptKey>,
    /// True if another transaction holds the lock of a tenant or lane limit.
    pub(super) contended: bool,
}

pub(super) struct Admitted {
    pub(super) admitted: Vec<Candidate>,
    /// Number of attempts that moved to the queues of concurrency limits.
    pub(super) limited_count: usize,
    /// True if some attempts stay in the queue because another transaction grants permits of their
    /// concurrency key. Attempts further back in the queue may have no limit. (Attempts behind an
    /// attempt with a tenant or lane limit mostly have the same limit.)
    pub(super) may_be_others: bool,
}

impl<'a> Permits<'a> {
    pub(super) fn new(connection: &'a Connection, limits: &'a Limits) -> Self {
        Self {
            connection,
            limits,
            ledger: PermitCounts::default(),
            swept: BTreeSet::new(),
            locked: BTreeSet::new(),
            granted: Vec::new(),
            left: HashSet::new(),
            contended: false,
        }
    }

    pub(super) fn is_limited(&self, candidate: &Candidate) -> bool {
        let (tenant, lane) = owner_and_lane(candidate);
        candidate.limit.is_some() || self.limits.apply_to(tenant, lane)
    }

    fn limits_on(&self, candidate: &Candidate) -> Vec<Limit> {
        candidate.limits_under(self.limits)
    }

    /// Tries to lock the tenant and lane limits of the attempts `first`, before any row of the
    /// queue is locked.
    pub(super) async fn prepare(&mut self, first: &[Candidate]) -> Tried<()> {
        let limits = first.iter().flat_map(|candidate| self.limits_on(candidate));
        let shared = limits.map(|limit| limit.key).filter(|key| is_shared(*key));
        let shared: BTreeSet<LimitKey> = shared.collect();
        let locked = self.lock(&Vec::from_iter(shared)).await?;
        self.locked.extend(locked);
        Ok(())
    }

    /// True if another transaction holds the lock of the attempt's tenant or lane limit.
    pub(super) fn is_deferred(&self, candidate: &Candidate) -> bool {
        let is_lost = |key| self.ledger.knows(key) && self.ledger.running(key).is_none();
        let limits = self.limits_on(candidate);
        limits.iter().any(|limit| is_shared(limit.key) && is_lost(limit.key))
    }

    /// Grants permits to the attempts in the order of `found`. An attempt that gets a permit of
    /// each of its limits is admitted. Attempts that are not admitted move to the queues of their
    /// limits or stay in the queue of their pool.
    pub(super) async fn admit(&mut self, found: Vec<Candidate>) -> Tried<Admitted> {
        let limits: Vec<Vec<Limit>> =
            found.iter().map(|candidate| self.limits_on(candidate)).collect();
        self.count(&limits).await?;
        let mut admitted = Vec::with_capacity(found.len());
        let (mut limited, mut may_be_others) = (Vec::new(), false);
        for (mut candidate, limits) in found.into_iter().zip(limits) {
            match self.ledger.admit(&limits) {
                Admission::Start => {
                    candidate.permits = limits.iter().map(|limit| limit.key).collect();
                    let granted = candidate.permits.iter().map(|limit| (*limit, candidate.key));
                    self.granted.extend(granted);
                    admitted.push(candidate);
                }
                Admission::Park(full) => limited.push((candidate.key, full)),
                Admission::Defer => {
                    may_be_others |= !self.is_deferred(&candidate);
                    self.left.insert(candidate.key);
                }
            }
        }
        self.move_to_queues(&limited).await?;
        Ok(Admitted { admitted, limited_count: limited.len(), may_be_others })
    }

    /// Moves the attempts of `front` whose concurrency limit is full to the queue of that limit.
    pub(super) async fn clear(&self, front: &[Candidate]) -> Tried<()> {
        let is_full = |limit: &Limit| self.ledger.running(limit.key) >= Some(limit.most);
        let limited: Vec<(AttemptKey, Limit)> = front
            .iter()
            .filter_map(|candidate| {
                let full = self.limits_on(candidate).into_iter().find(is_full)?;
                Some((candidate.key, full))
            })
            .collect();
        self.move_to_queues(&limited).await
    }

    /// Counts the permits of the limits that this claim has not counted yet. If a limit seems full,
    /// the function deletes the permits of finished attempts and counts again.
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
            self.connection.change(sql!("claim_permit_sweep"), &[&key_bytes(&full)]).await?;
            self.swept.extend(&full);
            self.note(&full).await?;
        }
        Ok(())
    }

    /// Tries to lock the limits `keys`, and returns the limits that it could lock.
    async fn lock(&mut self, keys: &[LimitKey]) -> Tried<Vec<LimitKey>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut locked = Vec::with_capacity(keys.len());
        for row in self.connection.rows(sql!("claim_permit_lock"), &[&key_bytes(keys)]).await? {
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
        for row in self.connection.rows(sql!("claim_permit_count"), &[&key_bytes(keys)]).await? {
            let Some(key) = nth(keys, get(&row, 0)?) else { continue };
            let own = self.granted.iter().filter(|(limit, _)| *limit == key).count();
            let running = count(&row, 1)?.saturating_add(own as u64);
            self.ledger.note(key, Some(u32::try_from(running).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    async fn move_to_queues(&self, limited: &[(AttemptKey, Limit)]) -> Tried<()> {
        if limited.is_empty() {
            return Ok(());
        }
        let keys: KeyColumns = limited.iter().map(|(key, _)| *key).collect();
        let queues = column(limited, |(_, full)| full.key.queue_pool());
        let most = column(limited, |(_, full)| full.most.cast_signed());
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
        let params: Params<'_> = &[scheduled_at, job_no, sequence, attempt, &queues, &most];
        self.connection.change(sql!("claim_to_limit_queue"), params).await?;
        Ok(())
    }

    pub(super) async fn write(&self) -> Tried<()> {
        if self.granted.is_empty() {
            return Ok(());
        }
        let limits = column(&self.granted, |(limit, _)| limit.as_bytes());
        let keys: KeyColumns = self.granted.iter().map(|(_, key)| *key).collect();
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
        let params: Params<'_> = &[&limits, scheduled_at, job_no, sequence, attempt];
        self.connection.change(sql!("claim_permit_take"), params).await?;
        Ok(())
    }
}

/// True for a tenant limit or a lane limit.
fn is_shared(key: LimitKey) -> bool {
    key.scope() != LimitScope::Key
}

impl Candidate {
    /// Returns the limits that apply to the attempt, the narrowest limit first.
    pub(crate) fn limits_under(&self, limits: &Limits) -> Vec<Limit> {
        let (tenant, lane) = owner_and_lane(self);
        limits.on(tenant, lane, self.limit)
    }
}

fn owner_and_lane(candidate: &Candidate) -> (TenantNo, Lane) {
    let lane = usize::try_from(candidate.lane).ok().and_then(|lane| Lane::ALL.get(lane).copied());
    (TenantNo(candidate.tenant), lane.unwrap_or_default())
}

pub(crate) fn key_bytes(keys: &[LimitKey]) -> Vec<&[u8]> {
    keys.iter().map(LimitKey::as_bytes).collect()
}

/// Returns the limit key at this position; the first key has position 1.
pub(crate) fn nth(keys: &[LimitKey], number: i64) -> Option<LimitKey> {
    keys.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}
