//! The load that is known.
//!
//! It is read from the store now and then. What this node places meanwhile is added at once, so
//! that many jobs that come together are spread; what came to nothing is taken back.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::balance::{Grain, Horizon, LoadProfile, Loads, Measure, Turn};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::{LoadProfiles, NodeState, Scope, StoreError};
use tokio::time::Instant;

use super::Balance;
use crate::CommandError;

/// What is known is good for this long at least.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// And for so many times as long as reading it took: no more than 5 % of the time goes into that.
const TIMES_AS_LONG: u32 = 20;

/// What is known of load, a second ago or later.
#[derive(Clone)]
pub struct Known {
    /// That of the tenant.
    pub own: Arc<Loads>,
    /// That of everybody.
    pub all: Arc<Loads>,
}

/// What is known, and what is placed meanwhile.
#[derive(Default)]
pub(super) struct Memory {
    inner: Mutex<Inner>,
    /// Whoever reads it anew holds this.
    reading: tokio::sync::Mutex<()>,
    was_read: AtomicBool,
}

#[derive(Default)]
pub(super) struct Inner {
    present: Option<Present>,
    /// Placements whose transaction is under way.
    reserved: HashMap<u64, Reserved>,
    reservations: u64,
    /// While load is read anew: placements that were committed meanwhile, which the reader may
    /// have seen or not.
    committed_meanwhile: Option<Vec<Reserved>>,
    /// How often it was said that what is known has changed.
    outdated: u64,
}

/// Load as it was read, with what was placed since.
struct Present {
    rhythms: Arc<LoadProfiles>,
    all: Arc<Loads>,
    /// That of tenants whom somebody has asked about since.
    own: HashMap<TenantNo, Arc<Loads>>,
    turn: Turn,
    read_at: Timestamp,
    good_until: Timestamp,
}

/// A rhythm, and what a run of its job costs.
pub(super) type Burden = (LoadProfile, Span);

/// A place that is held until its transaction is over.
#[derive(Clone)]
pub(super) struct Reserved {
    pub tenant: TenantNo,
    /// What the job counts for there.
    pub takes: Burden,
    /// What it no longer counts for.
    pub leaves: Option<Burden>,
}

impl Balance {
    /// The load of the scope's tenant and of everybody at `now`, read anew if what is known is
    /// older than a second, or than twenty times what reading it took.
    pub async fn loads(&self, scope: &Scope, now: Timestamp) -> Result<Known, CommandError> {
        self.prepare(scope.tenant, now).await?;
        let mut inner = self.inner();
        let Some(present) = &mut inner.present else { return Err(not_read().into()) };
        let all = Arc::clone(&present.all);
        Ok(Known { own: Arc::clone(present.own(scope.tenant)), all })
    }

    /// That of everybody.
    pub(super) async fn all_loads(&self, now: Timestamp) -> Result<Arc<Loads>, CommandError> {
        self.refresh(now).await?;
        let inner = self.inner();
        let Some(present) = &inner.present else { return Err(not_read().into()) };
        Ok(Arc::clone(&present.all))
    }

    /// Reads load anew if that is due, and adds up that of a tenant if nobody has since.
    pub(super) async fn prepare(&self, tenant: TenantNo, now: Timestamp) -> Result<(), StoreError> {
        self.refresh(now).await?;
        let found = {
            let inner = self.inner();
            let present = inner.present.as_ref().filter(|all| !all.own.contains_key(&tenant));
            present.map(|present| (Arc::clone(&present.rhythms), present.all.horizon()))
        };
        let Some((rhythms, horizon)) = found else { return Ok(()) };
        let to_add = Arc::clone(&rhythms);
        let own = added_up(move || to_add.loads_of(tenant, horizon)).await?;
        let mut inner = self.inner();
        // Was it read anew meanwhile, whoever asks adds it up again.
        if let Some(present) = &mut inner.present
            && Arc::ptr_eq(&present.rhythms, &rhythms)
        {
            present.own.entry(tenant).or_insert_with(|| Arc::new(own));
        }
        Ok(())
    }

    /// What is known has changed behind its back: whoever asks next reads it anew.
    pub fn outdate(&self) {
        let mut inner = self.inner();
        inner.outdated += 1;
        if let Some(present) = &mut inner.present {
            present.good_until = present.read_at;
        }
    }

    /// Reads load anew if that is due. Only one does, and those who come meanwhile use what was
    /// known before.
    pub async fn refresh(&self, now: Timestamp) -> Result<(), StoreError> {
        let (is_good, is_there) = {
            let inner = self.inner();
            (self.is_good(&inner, now), inner.present.is_some())
        };
        if is_good {
            return Ok(());
        }
        let _reading = match self.memory.reading.try_lock() {
            Ok(reading) => reading,
            Err(_) if is_there => return Ok(()),
            Err(_) => self.memory.reading.lock().await,
        };
        if self.is_good(&self.inner(), now) {
            return Ok(());
        }
        let outdated = {
            let mut inner = self.inner();
            inner.committed_meanwhile = Some(Vec::new());
            inner.outdated
        };
        let end = EndReading(self);
        let began = instant_now();
        let rhythms = Arc::new(LoadProfiles::read(&*self.store).await?);
        let turn = self.turn().await?;
        let horizon = Horizon::new(&self.settings, now);
        let (to_add, under_way) = (Arc::clone(&rhythms), self.inner().tenants_under_way());
        let (all, own) = added_up(move || {
            let all = Arc::new(to_add.loads(horizon));
            let only = to_add.only_tenant();
            let own = under_way.into_iter().filter(|tenant| Some(*tenant) != only);
            let own = own.map(|tenant| (tenant, Arc::new(to_add.loads_of(tenant, horizon))));
            let mut own: HashMap<_, _> = own.collect();
            own.extend(only.map(|only| (only, Arc::clone(&all))));
            (all, own)
        })
        .await?;
        let good_for = (began.elapsed() * TIMES_AS_LONG).max(GOOD_FOR);
        let good_until = now.saturating_add(Span::from_micros(good_for.as_micros() as u64));
        self.tell(&rhythms, &all);
        let mut present = Present { rhythms, all, own, turn, read_at: now, good_until };
        {
            let mut inner = self.inner();
            // What has changed while it was read may have been read or not.
            if inner.outdated != outdated {
                present.good_until = now;
            }
            inner.replace(present);
        }
        drop(end);
        Ok(())
    }

    fn tell(&self, rhythms: &LoadProfiles, all: &Loads) {
        let unreadable = rhythms.unreadable();
        if unreadable > 0 {
            tracing::warn!(jobs.count = unreadable, "{unreadable} jobs have unreadable rhythms");
        }
        let is_first = !self.memory.was_read.swap(true, Ordering::Relaxed);
        let (jobs, score) = (all.jobs(), || all.spread(Measure::Runs, Grain::Slot).score);
        if is_first {
            tracing::info!(job_count = jobs, distribution_score = score(), "bucket map rebuilt");
        } else {
            tracing::debug!(job_count = jobs, distribution_score = score(), "bucket map rebuilt");
        }
    }

    fn is_good(&self, inner: &Inner, now: Timestamp) -> bool {
        inner.present.as_ref().is_some_and(|present| {
            let begins = Horizon::new(&self.settings, now).start;
            (present.read_at..present.good_until).contains(&now)
                && present.all.horizon().start == begins
        })
    }

    /// Which of the nodes that place jobs this is.
    async fn turn(&self) -> Result<Turn, StoreError> {
        let (true, Some(me)) = (self.store.is_shared(), (self.myself)()) else {
            return Ok(Turn::ALONE);
        };
        let (_, members) = self.store.members().await?;
        let places =
            |member: &&evenkeel_store::Member| member.roles.api && member.state == NodeState::Live;
        let mut nodes: Vec<_> = members.iter().filter(places).map(|member| member.node).collect();
        nodes.sort_unstable();
        let mine = nodes.iter().position(|node| *node == me);
        // Whoever is about to join counts from the next time on.
        Ok(mine.map_or(Turn::ALONE, |mine| Turn { mine: mine as u32, of: nodes.len() as u32 }))
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.memory.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However reading ends, even by being given up, nobody keeps books for it any more.
struct EndReading<'a>(&'a Balance);

impl Drop for EndReading<'_> {
    fn drop(&mut self) {
        self.0.inner().committed_meanwhile = None;
    }
}

impl Inner {
    /// The load of a tenant, of everybody, and whose turn it is; `None` before it was ever read.
    pub(super) fn loads(&mut self, tenant: TenantNo) -> Option<(&mut Loads, &mut Loads, Turn)> {
        let present = self.present.as_mut()?;
        present.own(tenant);
        let Present { own, all, turn, .. } = present;
        let own = own.get_mut(&tenant)?;
        Some((Arc::make_mut(own), Arc::make_mut(all), *turn))
    }

    /// Those with placements that a reader may not see.
    fn tenants_under_way(&self) -> BTreeSet<TenantNo> {
        let committed = self.committed_meanwhile.iter().flatten();
        self.reserved.values().chain(committed).map(|reserved| reserved.tenant).collect()
    }

    /// Holds a place; says under which number. What it takes and leaves is already counted.
    pub(super) fn reserve(&mut self, reserved: Reserved) -> u64 {
        self.reservations += 1;
        self.reserved.insert(self.reservations, reserved);
        self.reservations
    }

    /// A place is taken for good.
    pub(super) fn commit(&mut self, reservation: u64) {
        let reserved = self.reserved.remove(&reservation);
        if let (Some(meanwhile), Some(reserved)) = (&mut self.committed_meanwhile, reserved) {
            meanwhile.push(reserved);
        }
    }

    /// A place is free again.
    pub(super) fn take_back(&mut self, reservation: u64) {
        let Some(Reserved { tenant, takes, leaves }) = self.reserved.remove(&reservation) else {
            return;
        };
        if let Some((own, all, _)) = self.loads(tenant) {
            for loads in [own, all] {
                loads.remove(&takes.0, 1, takes.1);
                if let Some((rhythm, cost)) = &leaves {
                    loads.add(rhythm, 1, *cost);
                }
            }
        }
    }

    /// What was read anew takes the place of what was known, and what it can't have seen is added:
    /// counted twice for a moment, a place is only taken less often.
    fn replace(&mut self, present: Present) {
        self.present = Some(present);
        let mut unseen: Vec<Reserved> = self.committed_meanwhile.take().unwrap_or_default();
        // What they leave is left when it is read again.
        self.reserved.values_mut().for_each(|reserved| reserved.leaves = None);
        unseen.extend(self.reserved.values().cloned());
        for Reserved { tenant, takes, .. } in unseen {
            if let Some((own, all, _)) = self.loads(tenant) {
                own.add(&takes.0, 1, takes.1);
                all.add(&takes.0, 1, takes.1);
            }
        }
    }
}

impl Present {
    /// That of a tenant. It is there, unless it was just read anew.
    fn own(&mut self, tenant: TenantNo) -> &mut Arc<Loads> {
        let Self { rhythms, all, own, .. } = self;
        own.entry(tenant).or_insert_with(|| Arc::new(rhythms.loads_of(tenant, all.horizon())))
    }
}

/// Adds up load where nobody waits for it: many rhythms take a while.
async fn added_up<T: Send + 'static>(
    add: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let added = tokio::task::spawn_blocking(add).await;
    added.map_err(|error| StoreError::Refused(error.into()))
}

fn not_read() -> StoreError {
    StoreError::Unavailable("load was not read".into())
}

#[expect(clippy::disallowed_methods, reason = "tokio's own clock, which a test can hold")]
pub(super) fn instant_now() -> Instant {
    Instant::now()
}
