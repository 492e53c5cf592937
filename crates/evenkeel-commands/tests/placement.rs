//! Tests of chosen start times of new jobs, on an in-memory store.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use evenkeel_commands::{
    Balance, CommandError, ControlCommand, Edit, EditMode, ExecutorCheck, Jobs, document_of,
    read_job,
};
use evenkeel_core::balance::{BalanceSettings, Granularity, Loads, Measure, Spread};
use evenkeel_core::chance::Chance;
use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::{JobId, NodeNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{Job, NewNode, NodeStore as _, Now, Role, Roles, Scope, Store, StoreError};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;
use serde_json::{Value, json};
use uuid::Uuid;

/// A fixed sequence of pseudo-random numbers.
struct Mixing(AtomicU64);

impl Chance for Mixing {
    fn bits(&self) -> u64 {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

struct OnlyNoop;

impl ExecutorCheck for OnlyNoop {
    fn check(&self, _: TenantNo, _: &str, _: &Value, _: &Value) -> Result<(), (String, String)> {
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        vec!["noop".into()]
    }
}

/// A store with a clock that the tests set.
struct World {
    store: ModelStore,
    clock: Arc<AtomicI64>,
    scope: Scope,
}

struct Node {
    jobs: Jobs,
    balance: Arc<Balance>,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(START.as_micros()));
        let hands = Arc::clone(&clock);
        let now = move || Timestamp::from_micros(hands.load(Ordering::SeqCst));
        let store = ModelStore::new(Arc::new(now));
        let tenant = store.tenant("main").await.unwrap();
        Self { store, clock, scope: Scope { tenant, role: Role::Operator } }
    }

    fn node(&self, seed: u64, me: Option<NodeNo>) -> Node {
        let store: Arc<dyn Store> = Arc::new(self.store.clone());
        let balance = Balance::of_node(store.clone(), BalanceSettings::default(), move || me);
        let chance = Arc::new(Mixing(AtomicU64::new(seed << 32)));
        let jobs = Jobs::new(store, chance, Arc::new(OnlyNoop), Arc::clone(&balance));
        Node { jobs, balance }
    }

    fn alone(&self) -> Node {
        self.node(1, None)
    }

    fn pass(&self, span: Span) {
        self.clock.fetch_add(span.as_micros() as i64, Ordering::SeqCst);
    }

    async fn now(&self) -> Timestamp {
        Store::now(&self.store).await.unwrap()
    }

    /// Returns the expected load of the tenant from the store, without the cache.
    async fn stored(&self) -> Arc<Loads> {
        let fresh = self.node(9, None).balance;
        fresh.loads(&self.scope, self.now().await).await.unwrap().own
    }
}

impl Node {
    async fn create(&self, world: &World, document: Value) -> Result<Job, CommandError> {
        self.jobs.create_or_find(&world.scope, &document).await.map(|made| made.job)
    }

    /// Creates jobs in one transaction.
    async fn create_all(&self, world: &World, documents: &[Value]) {
        let read =
            |document| read_job(document, world.scope.tenant, self.jobs.executors()).unwrap();
        let specs = documents.iter().map(read).collect();
        let made = self.jobs.create_each(&world.scope, specs).await.unwrap();
        assert!(made.iter().all(Result::is_ok));
    }

    async fn change(&self, world: &World, id: JobId, sent: Value) -> Job {
        let edit = Edit { sent, mode: EditMode::Patch, if_generation: None };
        let show = |job: &Job, _| document_of(&job.about, &job.definition, ExecutorCatalog::EMPTY);
        self.jobs.update(&world.scope, id, &edit, &show).await.unwrap().0
    }

    /// Returns the number of the tenant's jobs in the cached load of this node.
    async fn known(&self, world: &World) -> u64 {
        self.balance.loads(&world.scope, world.now().await).await.unwrap().own.jobs()
    }
}

fn every(span: &str) -> Value {
    json!({"executor_type": "noop", "schedule": span})
}

fn slot(job: &Job) -> Slot {
    Slot::of(job.next_at.unwrap())
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

#[tokio::test]
async fn jobs_with_the_same_interval_get_different_slots() {
    let world = World::new().await;
    let node = world.alone();
    let mut slots = BTreeSet::new();
    for _ in 0..10 {
        let job = node.create(&world, every("6h")).await.unwrap();
        let next = job.next_at.unwrap();
        assert!(START < next && next <= at(6 * 3600), "{next}");
        slots.insert(slot(&job));
    }
    assert_eq!(slots.len(), 10);
}

#[tokio::test]
async fn jobs_of_a_batch_are_spread() {
    let world = World::new().await;
    world.alone().create_all(&world, &vec![every("24h"); 960]).await;
    let peak = world.stored().await.spread(Measure::Runs, Granularity::Slot).peak;
    assert_eq!(peak, 10.0);
}

#[tokio::test]
async fn jobs_of_one_slot_start_at_different_seconds_unless_exact() {
    let world = World::new().await;
    let node = world.alone();
    let mut seconds = BTreeSet::new();
    for _ in 0..8 {
        let job = node.create(&world, every("15m")).await.unwrap();
        seconds.insert(job.next_at.unwrap().since(slot(&job).start()));
    }
    assert_eq!(seconds.len(), 8, "{seconds:?}");
    let mut exact = every("6h");
    exact["exact"] = true.into();
    let job = node.create(&world, exact).await.unwrap();
    assert_eq!(job.next_at, Some(slot(&job).start()));
}

#[tokio::test]
async fn fifty_minutely_jobs_start_in_fifty_seconds() {
    let world = World::new().await;
    let node = world.alone();
    node.create_all(&world, &vec![every("1m"); 40]).await;
    for _ in 0..10 {
        node.create(&world, every("1m")).await.unwrap();
    }
    let by_second = world.stored().await.spread_by_second().unwrap();
    assert_eq!((by_second.score, by_second.peak), (1.0, 1.0));
    // Of 70 jobs that run every minute, ten must share their start second with another job.
    node.create_all(&world, &vec![every("60s"); 20]).await;
    let by_second = world.stored().await.spread_by_second().unwrap();
    assert_eq!((by_second.score, by_second.peak, by_second.least_peak), (1.0, 2.0, 2.0));
}

#[tokio::test]
async fn jobs_with_fixed_times_are_not_placed() {
    let world = World::new().await;
    let node = world.alone();
    let anchored = node.create(&world, every("R/2020-01-01T00:07:00Z/PT1H")).await.unwrap();
    assert_eq!(anchored.next_at.unwrap().as_micros().rem_euclid(3_600_000_000), 420_000_000);
    let mut from = every("1h");
    from["start_at"] = json!(at(100_000));
    assert_eq!(node.create(&world, from).await.unwrap().next_at, Some(at(100_000)));
}

#[tokio::test]
async fn refused_job_leaves_no_load() {
    let world = World::new().await;
    let node = world.alone();
    let mut named = every("1h");
    named["name"] = "news".into();
    node.create(&world, named.clone()).await.unwrap();
    for _ in 0..5 {
        let refused = node.create(&world, named.clone()).await;
        assert!(matches!(refused, Err(CommandError::NameTaken { .. })));
    }
    assert_eq!(node.known(&world).await, 1);
    let read = |document| read_job(document, world.scope.tenant, node.jobs.executors()).unwrap();
    let specs = vec![read(&named), read(&every("1h")), read(&named)];
    node.jobs.create_each(&world.scope, specs.clone()).await.unwrap();
    assert_eq!(node.known(&world).await, 2);
    node.jobs.create_each(&world.scope, specs).await.unwrap();
    assert_eq!(node.known(&world).await, 3);
    world.pass(secs(2));
    assert_eq!(node.known(&world).await, 3, "and so the store says");
}

#[tokio::test]
async fn resumed_job_is_placed_again() {
    let world = World::new().await;
    let node = world.alone();
    let paused = node.create(&world, every("24h")).await.unwrap();
    node.jobs.control(&world.scope, paused.id, ControlCommand::Pause, None).await.unwrap();
    world.pass(secs(2));
    let other = node.create(&world, every("24h")).await.unwrap();
    assert_eq!(slot(&other), slot(&paused), "the other job took the free slot");
    let resumed =
        node.jobs.control(&world.scope, paused.id, ControlCommand::Resume, None).await.unwrap();
    let resumed = resumed.job.unwrap();
    assert_ne!(slot(&resumed), slot(&paused));
    assert!(resumed.next_at.unwrap() > world.now().await);
}

#[tokio::test]
async fn jobs_resumed_together_are_spread() {
    let world = World::new().await;
    let node = world.alone();
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(node.create(&world, every("6h")).await.unwrap().id);
    }
    node.jobs.control_many(&world.scope, &ids, ControlCommand::Pause, None).await.unwrap();
    world.pass(secs(5 * 3600));
    node.jobs.control_many(&world.scope, &ids, ControlCommand::Resume, None).await.unwrap();
    let spread = world.stored().await.spread(Measure::Next, Granularity::Slot);
    assert_eq!(spread.peak, 2.0, "40 jobs in 24 slots");
}

#[tokio::test]
async fn new_interval_places_a_job_again_and_a_new_name_does_not() {
    let world = World::new().await;
    let node = world.alone();
    let job = node.create(&world, every("24h")).await.unwrap();
    world.pass(secs(3600));
    for sent in [
        json!({"name": "news"}),
        json!({"priority": 7}),
        json!({"cost": "1h"}),
        json!({"schedule": {"kind": "interval", "every": "24h", "tolerance": "2h"}}),
    ] {
        let changed = node.change(&world, job.id, sent.clone()).await;
        assert_eq!(changed.next_at, job.next_at, "{sent}");
    }
    let changed = node.change(&world, job.id, json!({"schedule": "6h"})).await;
    let next = changed.next_at.unwrap();
    let now = world.now().await;
    assert!(now < next && next <= now.saturating_add(secs(6 * 3600)), "{next}");
    assert_eq!(node.known(&world).await, 1, "its former load is removed");
}

#[tokio::test]
async fn new_preferred_hours_place_a_job_again() {
    let world = World::new().await;
    let node = world.alone();
    let mut nightly = every("24h");
    nightly["prefer_window"] = json!({"start": "02:00", "end": "03:00"});
    nightly["timezone"] = "America/Toronto".into();
    let zone = evenkeel_core::Zone::get("America/Toronto").unwrap();
    let hour = |job: &Job| zone.local_text(job.next_at.unwrap())[11..13].to_owned();
    for _ in 0..8 {
        let job = node.create(&world, nightly.clone()).await.unwrap();
        assert_eq!(hour(&job), "02");
    }
    let any = node.create(&world, every("24h")).await.unwrap();
    let sent = json!({"prefer_window": {"start": "14:00", "end": "15:00"},
                      "timezone": "America/Toronto"});
    assert_eq!(hour(&node.change(&world, any.id, sent).await), "14");
    let wider = json!({"prefer_window": {"start": "13:00", "end": "16:00"}});
    assert_eq!(hour(&node.change(&world, any.id, wider).await), "14", "it is there already");
}

#[tokio::test]
async fn each_tenant_is_balanced_separately() {
    let world = World::new().await;
    let node = world.alone();
    let other = world.store.tenant("other").await.unwrap();
    node.create_all(&world, &vec![every("24h"); 96]).await;
    let other = Scope { tenant: other, role: Role::Operator };
    for _ in 0..96 {
        node.jobs.create_or_find(&other, &every("24h")).await.unwrap();
    }
    for scope in [other, world.scope] {
        let own = node.balance.loads(&scope, world.now().await).await.unwrap().own;
        assert_eq!((own.jobs(), own.spread(Measure::Runs, Granularity::Slot).peak), (96, 1.0));
    }
}

#[tokio::test]
async fn changes_of_other_nodes_are_known_a_second_later() {
    let world = World::new().await;
    let (one, two) = (world.node(1, None), world.node(2, None));
    assert_eq!((one.known(&world).await, two.known(&world).await), (0, 0));
    one.create_all(&world, &vec![every("1h"); 5]).await;
    assert_eq!((one.known(&world).await, two.known(&world).await), (5, 0));
    world.pass(secs(1));
    assert_eq!((one.known(&world).await, two.known(&world).await), (5, 5));
    // After `invalidate`, the second node reads the load from the store again.
    two.balance.invalidate();
    assert_eq!(two.known(&world).await, 5);
}

/// Returns the document of the `n`-th job of a mix of jobs with different intervals.
fn mixed(n: usize) -> Value {
    every(["24h", "1h", "6h", "30m", "24h", "12h", "2h", "24h"][n % 8])
}

const TOGETHER: usize = 10_000;
/// Number of jobs for which a node chooses start times between two cache refreshes.
const AT_ONCE: usize = 100;

/// Returns how evenly runs are spread after `nodes` nodes have created jobs in turn, each node with
/// a load cache that is one second old.
async fn placed_by(nodes: u32) -> (Spread, Spread) {
    let world = World::new().await;
    let mut all = Vec::new();
    for n in 0..nodes {
        let name = format!("node-{n}");
        let identity = Uuid::from_u128(u128::from(n) + 1);
        let node = NewNode { name, identity, roles: Roles::ALL, pools: Vec::new() };
        let joined: Result<_, StoreError> = world.store.join(&node, Now::Database).await;
        all.push(world.node(u64::from(n), Some(joined.unwrap().node)));
    }
    let mut jobs = (0..TOGETHER).map(mixed);
    loop {
        for node in &all {
            let batch: Vec<Value> = jobs.by_ref().take(AT_ONCE).collect();
            if batch.is_empty() {
                let loads = world.stored().await;
                assert_eq!(loads.jobs(), TOGETHER as u64);
                let spread = |measure| loads.spread(measure, Granularity::Slot);
                return (spread(Measure::Runs), spread(Measure::Cost));
            }
            node.create_all(&world, &batch).await;
        }
        world.pass(secs(1));
    }
}

#[tokio::test]
async fn three_nodes_spread_jobs_almost_like_one() {
    let (one, one_cost) = placed_by(1).await;
    let (three, three_cost) = placed_by(3).await;
    for (one, three) in [(one, three), (one_cost, three_cost)] {
        assert!(three.score > one.score - 0.03, "{one:?} {three:?}");
        assert!(three.peak <= one.peak * 1.05, "{one:?} {three:?}");
    }
    println!("one {one:?}\nthree {three:?}");
}
