//! Caches the expected load: the number of expected runs of all tenants in each time slot.
//!
//! A node refreshes its cache of the expected load from the store at intervals. A start time that
//! this node chooses is added to the cache at once, so that jobs created together are spread over
//! time. If the transaction of a chosen start time fails, the start time is removed from the cache.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::balance::{Granularity, Horizon, LoadProfile, Loads, Measure, NodeTurn};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::{LoadProfiles, NodeState, Scope, StoreError};

use super::{Balance, blocking};
use crate::Result;
use crate::feed::instant_now;

/// Minimum time for which the cache of the expected load is valid.
const VALID_FOR: Duration = Duration::from_secs(1);
/// The cache of the expected load is valid for 20 times as long as its last read took, so reads
/// take at most 5% of the time.
const READ_TIME_FACTOR: u32 = 20;

/// The expected load (expected runs by time slot) from the cache.
#[derive(Clone)]
pub struct KnownLoads {
    pub own: Arc<Loads>,
    /// Expected load of all tenants together.
    pub all: Arc<Loads>,
}

/// The cached expected load, including the start times that this node has chosen since the last
/// read.
#[derive(Default)]
pub(super) struct LoadCache {
    inner: Mutex<Inner>,
    /// Locked while the expected load is read from the store.
    reading: tokio::sync::Mutex<()>,
    was_read: AtomicBool,
}

#[derive(Default)]
pub(super) struct Inner {
    cached: Option<CachedLoads>,
    /// Chosen start times whose transaction has not finished yet.
    reserved: HashMap<u64, Reserved>,
    reservations: u64,
    /// Chosen start times whose transaction was committed while the expected load is being read, so
    /// that the read may have missed them; `None` while nothing is read.
    committed_during_read: Option<Vec<Reserved>>,
    /// Counts the calls of [`Balance::invalidate`].
    invalidations: u64,
}

/// The expected load from the last read, plus the load of start times that were chosen later.
struct CachedLoads {
    profiles: Arc<LoadProfiles>,
    all: Arc<Loads>,
    /// Expected loads of single tenants that were requested since the last read.
    own: HashMap<TenantNo, Arc<Loads>>,
    turn: NodeTurn,
    read_at: Timestamp,
    valid_until: Timestamp,
}

/// A load profile (the time slots of a job's runs) and the cost of one run.
pub(super) type JobLoad = (LoadProfile, Span);

/// A chosen start time whose transaction has not finished yet.
#[derive(Clone)]
pub(super) struct Reserved {
    pub tenant: TenantNo,
    /// Expected load of the job at its chosen start time.
    pub added: JobLoad,
    /// Expected load of the job at its former start time, if the job is rescheduled.
    pub removed: Option<JobLoad>,
}

impl Balance {
    /// Returns the expected load of the scope's tenant and the expected load of all tenants at
    /// `now`. Reads the expected load from the store if the cache has expired.
    pub async fn loads(&self, scope: &Scope, now: Timestamp) -> Result<KnownLoads> {
        self.prepare(scope.tenant, now).await?;
        let mut inner = self.inner();
        let cached = inner.cached.as_mut().ok_or_else(not_read)?;
        let all = Arc::clone(&cached.all);
        Ok(KnownLoads { own: Arc::clone(cached.own(scope.tenant)), all })
    }

    pub(super) async fn all_loads(&self, now: Timestamp) -> Result<Arc<Loads>> {
        self.refresh(now).await?;
        let inner = self.inner();
        Ok(Arc::clone(&inner.cached.as_ref().ok_or_else(not_read)?.all))
    }

    /// Refreshes the cache of the expected load if it has expired. Also sums up the expected load
    /// of the tenant, if that is not cached.
    pub(super) async fn prepare(&self, tenant: TenantNo, now: Timestamp) -> Result<(), StoreError> {
        self.refresh(now).await?;
        let found = {
            let inner = self.inner();
            let cached = inner.cached.as_ref().filter(|all| !all.own.contains_key(&tenant));
            cached.map(|cached| (Arc::clone(&cached.profiles), cached.all.horizon()))
        };
        let Some((profiles, horizon)) = found else { return Ok(()) };
        let to_sum = Arc::clone(&profiles);
        let own = blocking(move || to_sum.loads_of(tenant, horizon)).await?;
        let mut inner = self.inner();
        // If the cache was refreshed in the meantime, the next request sums up the expected load of
        // the tenant again.
        if let Some(cached) = &mut inner.cached
            && Arc::ptr_eq(&cached.profiles, &profiles)
        {
            cached.own.entry(tenant).or_insert_with(|| Arc::new(own));
        }
        Ok(())
    }

    /// Invalidates the cached expected load, so that the next request reads it from the store.
    pub fn invalidate(&self) {
        let mut inner = self.inner();
        inner.invalidations += 1;
        if let Some(cached) = &mut inner.cached {
            cached.valid_until = cached.read_at;
        }
    }

    /// Refreshes the cache of the expected load if it has expired. One task reads the expected load
    /// from the store; until the read is finished, other tasks use the old values.
    pub async fn refresh(&self, now: Timestamp) -> Result<(), StoreError> {
        let (is_valid, is_cached) = {
            let inner = self.inner();
            (self.is_valid(&inner, now), inner.cached.is_some())
        };
        if is_valid {
            return Ok(());
        }
        let _reading = match self.cache.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) if is_cached => return Ok(()),
            Err(_) => self.cache.reading.lock().await,
        };
        if self.is_valid(&self.inner(), now) {
            return Ok(());
        }
        let invalidations = {
            let mut inner = self.inner();
            inner.committed_during_read = Some(Vec::new());
            inner.invalidations
        };
        let end = EndReading(self);
        let began = instant_now();
        let profiles = Arc::new(LoadProfiles::read(&*self.store).await?);
        let turn = self.turn().await?;
        let horizon = Horizon::new(&self.settings, now);
        let (to_sum, pending_tenants) =
            (Arc::clone(&profiles), self.inner().tenants_with_placements());
        let (all, own) = blocking(move || {
            let all = Arc::new(to_sum.loads(horizon));
            let only = to_sum.only_tenant();
            let own = pending_tenants.into_iter().filter(|tenant| Some(*tenant) != only);
            let own = own.map(|tenant| (tenant, Arc::new(to_sum.loads_of(tenant, horizon))));
            let mut own: HashMap<_, _> = own.collect();
            own.extend(only.map(|only| (only, Arc::clone(&all))));
            (all, own)
        })
        .await?;
        let valid_for = (began.elapsed() * READ_TIME_FACTOR).max(VALID_FOR);
        let valid_until = now.saturating_add(Span::from_micros(valid_for.as_micros() as u64));
        self.log_read(&profiles, &all);
        let mut cached = CachedLoads { profiles, all, own, turn, read_at: now, valid_until };
        {
            let mut inner = self.inner();
            // If the cache was invalidated during the read, the read may have missed the change
            // that invalidated it.
            if inner.invalidations != invalidations {
                cached.valid_until = now;
            }
            inner.replace(cached);
        }
        drop(end);
        Ok(())
    }

    fn log_read(&self, profiles: &LoadProfiles, all: &Loads) {
        let unreadable = profiles.unreadable();
        if unreadable > 0 {
            tracing::warn!(
                jobs.count = unreadable,
                "stored load of some jobs cannot be read; choosing start times without these jobs"
            );
        }
        let is_first = !self.cache.was_read.swap(true, Ordering::Relaxed);
        let (jobs, score) = (all.jobs(), || all.spread(Measure::Runs, Granularity::Slot).score);
        if is_first {
            tracing::info!(job_count = jobs, distribution_score = score(), "bucket map rebuilt");
        } else {
            tracing::debug!(job_count = jobs, distribution_score = score(), "bucket map rebuilt");
        }
    }

    fn is_valid(&self, inner: &Inner, now: Timestamp) -> bool {
        inner.cached.as_ref().is_some_and(|cached| {
            let begins = Horizon::new(&self.settings, now).start;
            (cached.read_at..cached.valid_until).contains(&now)
                && cached.all.horizon().start == begins
        })
    }

    /// Returns the position of this node among the nodes that choose start times.
    async fn turn(&self) -> Result<NodeTurn, StoreError> {
        let (true, Some(me)) = (self.store.is_shared(), (self.this_node)()) else {
            return Ok(NodeTurn::ALONE);
        };
        let (_, members) = self.store.members().await?;
        let places =
            |member: &&evenkeel_store::Member| member.roles.api && member.state == NodeState::Live;
        let mut nodes: Vec<_> = members.iter().filter(places).map(|member| member.node).collect();
        nodes.sort_unstable();
        let mine = nodes.iter().position(|node| *node == me);
        // A node that has not joined the cluster yet gets its position at a later refresh of the
        // cache.
        Ok(mine
            .map_or(NodeTurn::ALONE, |mine| NodeTurn { mine: mine as u32, of: nodes.len() as u32 }))
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.cache.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops recording committed start times when the read of the expected load ends or is cancelled.
struct EndReading<'a>(&'a Balance);

impl Drop for EndReading<'_> {
    fn drop(&mut self) {
        self.0.inner().committed_during_read = None;
    }
}

impl Inner {
    /// Returns the expected load of a tenant, the expected load of all tenants, and the position of
    /// this node; `None` before the first read.
    pub(super) fn loads(&mut self, tenant: TenantNo) -> Option<(&mut Loads, &mut Loads, NodeTurn)> {
        let cached = self.cached.as_mut()?;
        cached.own(tenant);
        let CachedLoads { own, all, turn, .. } = cached;
        let own = own.get_mut(&tenant)?;
        Some((Arc::make_mut(own), Arc::make_mut(all), *turn))
    }

    /// Returns the tenants with chosen start times that a read of the expected load may miss.
    fn tenants_with_placements(&self) -> BTreeSet<TenantNo> {
        let committed = self.committed_during_read.iter().flatten();
        self.reserved.values().chain(committed).map(|reserved| reserved.tenant).collect()
    }

    /// Registers a chosen start time, whose expected load is already counted, and returns the
    /// number of its reservation.
    pub(super) fn reserve(&mut self, reserved: Reserved) -> u64 {
        self.reservations += 1;
        self.reserved.insert(self.reservations, reserved);
        self.reservations
    }

    pub(super) fn commit(&mut self, reservation: u64) {
        let reserved = self.reserved.remove(&reservation);
        if let (Some(committed), Some(reserved)) = (&mut self.committed_during_read, reserved) {
            committed.push(reserved);
        }
    }

    /// Removes the expected load of a chosen start time whose transaction failed.
    pub(super) fn roll_back(&mut self, reservation: u64) {
        let Some(Reserved { tenant, added, removed }) = self.reserved.remove(&reservation) else {
            return;
        };
        if let Some((own, all, _)) = self.loads(tenant) {
            for loads in [own, all] {
                loads.remove(&added.0, 1, added.1);
                if let Some((profile, cost)) = &removed {
                    loads.add(profile, 1, *cost);
                }
            }
        }
    }

    /// Replaces the cached expected load, and adds the chosen start times that the read may have
    /// missed. A start time that is counted twice until the next read only makes its time slot less
    /// attractive.
    fn replace(&mut self, cached: CachedLoads) {
        self.cached = Some(cached);
        let mut missed: Vec<Reserved> = self.committed_during_read.take().unwrap_or_default();
        // The new cached load still contains the former load of jobs whose transaction is open, so
        // a rollback must not add this former load again.
        self.reserved.values_mut().for_each(|reserved| reserved.removed = None);
        missed.extend(self.reserved.values().cloned());
        for Reserved { tenant, added, .. } in missed {
            if let Some((own, all, _)) = self.loads(tenant) {
                own.add(&added.0, 1, added.1);
                all.add(&added.0, 1, added.1);
            }
        }
    }
}

impl CachedLoads {
    /// Returns the expected load of a tenant, which is summed up first if it is not cached.
    fn own(&mut self, tenant: TenantNo) -> &mut Arc<Loads> {
        let Self { profiles, all, own, .. } = self;
        own.entry(tenant).or_insert_with(|| Arc::new(profiles.loads_of(tenant, all.horizon())))
    }
}

fn not_read() -> StoreError {
    StoreError::Unavailable("the load has not been read yet".into())
}
