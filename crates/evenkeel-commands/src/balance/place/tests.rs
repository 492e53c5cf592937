//! Places that are held while their transaction is under way.

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
        self.balance.placing(&self.scope, self.now(), Occasion::New).await.unwrap()
    }

    /// How many jobs are known; the store has none.
    async fn known(&self) -> (u64, u64) {
        let known = self.balance.loads(&self.scope, self.now()).await.unwrap();
        (known.own.jobs(), known.all.jobs())
    }

    /// Long enough that load is read anew.
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
async fn what_is_under_way_counts_and_what_came_to_nothing_does_not() {
    let world = world().await;
    let mut placing = world.placing().await;
    for n in 0..4 {
        assert!(placing.first(id(n), &hourly(), START).is_some());
    }
    assert_eq!(world.known().await, (4, 4));
    placing.keep(id(0));
    drop(placing);
    assert_eq!(world.known().await, (1, 1));
    world.pass();
    assert_eq!(world.known().await, (0, 0), "the store never heard of it");
}

#[tokio::test]
async fn what_is_under_way_is_not_forgotten_when_load_is_read_anew() {
    let world = world().await;
    let mut placing = world.placing().await;
    placing.first(id(1), &hourly(), START);
    world.pass();
    assert_eq!(world.known().await, (1, 1));
    drop(placing);
    assert_eq!(world.known().await, (0, 0));
}

#[tokio::test]
async fn what_changes_while_load_is_read_makes_whoever_asks_next_read_it_again() {
    let store = ModelStore::new(Arc::new(|| START));
    let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Operator };
    // Whoever reads asks who it is, after it has read.
    let (reads, me) = (Arc::new(AtomicI64::new(0)), Arc::new(OnceLock::<Weak<Balance>>::new()));
    let (count, reader) = (Arc::clone(&reads), Arc::clone(&me));
    let balance = Balance::of_node(Arc::new(store), BalanceSettings::default(), move || {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            reader.get().unwrap().upgrade().unwrap().outdate();
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
async fn who_is_placed_twice_has_one_place() {
    let world = world().await;
    let mut placing = world.placing().await;
    let first = placing.first(id(1), &hourly(), START);
    assert_eq!(placing.first(id(1), &hourly(), START).is_some(), first.is_some());
    assert_eq!(world.known().await, (1, 1));
}
