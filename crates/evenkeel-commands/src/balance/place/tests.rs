//! Tests of chosen start times of jobs whose transaction is still open.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{OnceLock, Weak};

use evenkeel_core::Schedule;
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::schedule::Interval;
use evenkeel_store::{Role, Store as _};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;

use super::*;

struct World {
    balance: Arc<Balance>,
    scope: Scope,
    now: AtomicI64,
}

async fn world() -> World {
    let store = ModelStore::new(Arc::new(|| START));
    let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Operator };
    let balance = Balance::new(Arc::new(store), BalanceSettings::default());
    World { balance, scope, now: AtomicI64::new(0) }
}

impl World {
    fn now(&self) -> Timestamp {
        at(self.now.load(Ordering::Relaxed))
    }

    async fn placing(&self) -> Placing {
        self.balance.placing(&self.scope, self.now(), PlacementReason::New).await.unwrap()
    }

    /// Returns the number of jobs in the cached load of the tenant and of all tenants.
    async fn known(&self) -> (u64, u64) {
        let known = self.balance.loads(&self.scope, self.now()).await.unwrap();
        (known.own.jobs(), known.all.jobs())
    }

    /// Advances the clock until the cache has expired.
    fn pass(&self) {
        self.now.fetch_add(2, Ordering::Relaxed);
    }
}

fn hourly() -> Definition {
    Definition::noop(Schedule::Interval(Interval::new(Span::from_secs(3600), None).unwrap()))
}

fn id(n: u8) -> JobId {
    JobId::new(START, [n; 10])
}

#[tokio::test]
async fn placements_count_until_they_are_rolled_back() {
    let world = world().await;
    let mut placing = world.placing().await;
    for n in 0..4 {
        assert!(placing.choose(id(n), &hourly(), None, START).is_some());
    }
    assert_eq!(world.known().await, (4, 4));
    placing.confirm(id(0));
    drop(placing);
    assert_eq!(world.known().await, (1, 1));
    world.pass();
    assert_eq!(world.known().await, (0, 0), "the store has no such job");
}

#[tokio::test]
async fn open_placements_survive_a_refresh_of_the_cache() {
    let world = world().await;
    let mut placing = world.placing().await;
    placing.choose(id(1), &hourly(), None, START);
    world.pass();
    assert_eq!(world.known().await, (1, 1));
    drop(placing);
    assert_eq!(world.known().await, (0, 0));
}

#[tokio::test]
async fn invalidation_during_a_read_causes_another_read() {
    let store = ModelStore::new(Arc::new(|| START));
    let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Operator };
    // A cache refresh calls the closure after it has read the expected load. The first call of the
    // closure invalidates the cache.
    let (reads, me) = (Arc::new(AtomicI64::new(0)), Arc::new(OnceLock::<Weak<Balance>>::new()));
    let (count, reader) = (Arc::clone(&reads), Arc::clone(&me));
    let balance = Balance::of_node(Arc::new(store), BalanceSettings::default(), move || {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            reader.get().unwrap().upgrade().unwrap().invalidate();
        }
        None
    });
    me.set(Arc::downgrade(&balance)).unwrap();
    for expected in [1, 2, 2] {
        balance.loads(&scope, START).await.unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn job_placed_twice_counts_once() {
    let world = world().await;
    let mut placing = world.placing().await;
    let first = placing.choose(id(1), &hourly(), None, START);
    assert_eq!(placing.choose(id(1), &hourly(), None, START).is_some(), first.is_some());
    assert_eq!(world.known().await, (1, 1));
}
