//! A cluster, its jobs, and what happens to it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::job::ExecutorSpec;
use evenkeel_core::lease::LeaseTimings;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, JobNo, RunKey, Span, Timestamp};
use evenkeel_engine::{Clock, Engine, Parts, RandomChance, Retention, Settings};
use evenkeel_executors::Registry;
use evenkeel_store::{JobStore, NewJob, Now, Registered, Role, Scope, Signal, Store, Triggered};
use evenkeel_store_testkit::model::ModelStore;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::body::{Book, SimExecutor, Time};
use crate::bounds::Bounds;
use crate::checker;
use crate::faulty::{FaultyStore, Link};

/// What may go wrong.
#[derive(Copy, Clone, Debug)]
pub struct Faults {
    pub crashes: bool,
    pub store: bool,
    pub time: bool,
}

impl Faults {
    pub const NONE: Self = Self { crashes: false, store: false, time: false };
    pub const CRASHES: Self = Self { crashes: true, ..Self::NONE };
    pub const STORE: Self = Self { store: true, ..Self::NONE };
    pub const TIME: Self = Self { time: true, ..Self::NONE };
    pub const ALL: Self = Self { crashes: true, store: true, time: true };
}

/// One life to play.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub hours: u64,
    pub nodes: usize,
    pub jobs: usize,
    /// The shortest interval, in seconds; the longest is sixty times that.
    pub shortest: u64,
    pub faults: Faults,
    /// Seconds between faults, on average.
    pub fault_every: u64,
    pub leases: LeaseTimings,
    pub poll: Duration,
}

impl Scenario {
    /// Much happens in short time, with the timings of production.
    pub fn dense(seed: u64, faults: Faults) -> Self {
        Self {
            seed,
            hours: 1,
            nodes: 3,
            jobs: 24,
            shortest: 1,
            faults,
            fault_every: 90,
            leases: LeaseTimings::default(),
            poll: Duration::from_secs(1),
        }
    }

    /// Long lives with slow leases, as the documents have them.
    pub fn long(seed: u64, faults: Faults) -> Self {
        Self {
            hours: 40,
            jobs: 12,
            shortest: 300,
            fault_every: 1800,
            leases: LeaseTimings {
                ping: Span::from_secs(30),
                silent_after: Span::from_secs(90),
                grace: Span::from_secs(30),
            },
            poll: Duration::from_secs(20),
            ..Self::dense(seed, faults)
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    pub simulated_hours: u64,
    pub bodies: u64,
    pub faults: u64,
    pub skipped_times: u64,
    pub latest_ms: u64,
    pub fingerprint: u64,
    pub violations: Vec<String>,
}

impl Outcome {
    pub fn add(&mut self, other: &Self) {
        self.simulated_hours += other.simulated_hours;
        self.bodies += other.bodies;
        self.faults += other.faults;
        self.skipped_times += other.skipped_times;
        self.latest_ms = self.latest_ms.max(other.latest_ms);
    }
}

/// True time, and a database clock that can be set wrong.
pub struct SimTime {
    began: Instant,
    db_offset: AtomicI64,
}

#[expect(clippy::disallowed_methods, reason = "tokio's clock, which stands still until all wait")]
fn instant() -> Instant {
    Instant::now()
}

const DAWN: i64 = 1_900_000_000_000_000;

impl Time for SimTime {
    fn truth(&self) -> Duration {
        instant() - self.began
    }

    fn db(&self) -> Timestamp {
        let truth = self.truth().as_micros() as i64;
        Timestamp::from_micros(DAWN + truth + self.db_offset.load(Ordering::Relaxed))
    }
}

struct NodeClock(Arc<SimTime>);

impl Clock for NodeClock {
    fn wall(&self) -> Timestamp {
        Timestamp::MIN
    }

    fn monotonic(&self) -> Duration {
        self.0.truth()
    }
}

struct SimNode {
    identity: Uuid,
    link: Arc<Link>,
    engine: Option<Engine>,
    alive: watch::Sender<bool>,
}

/// A job and what its times must be.
#[derive(Clone, Debug)]
pub struct Planned {
    pub job: JobNo,
    pub id: JobId,
    pub first: Timestamp,
    pub every: Span,
    pub definition: Definition,
}

struct World {
    scenario: Scenario,
    chance: Arc<RandomChance>,
    time: Arc<SimTime>,
    model: ModelStore,
    book: Book,
    bounds: Arc<Bounds>,
    plan: Vec<Planned>,
    triggered: Vec<RunKey>,
    nodes: Vec<SimNode>,
    faults: u64,
    processes: u32,
}

/// Plays a life.
pub fn run(scenario: Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(scenario);
        world.play().await
    })
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let time = Arc::new(SimTime { began: instant(), db_offset: AtomicI64::new(0) });
        let clock = Arc::clone(&time);
        Self {
            chance: Arc::new(RandomChance::from_seed(scenario.seed)),
            model: ModelStore::new(Arc::new(move || clock.db())),
            time,
            book: Arc::new(Mutex::new(Vec::new())),
            bounds: Arc::default(),
            plan: Vec::new(),
            triggered: Vec::new(),
            nodes: Vec::new(),
            faults: 0,
            processes: 0,
            scenario,
        }
    }

    async fn play(&mut self) -> Outcome {
        let tenant = self.model.tenant("sim").await.unwrap();
        let scope = Scope { tenant, role: Role::Admin };
        for index in 0..self.scenario.nodes {
            let (alive, _) = watch::channel(false);
            self.nodes.push(SimNode {
                identity: Uuid::from_u128(index as u128 + 1),
                link: Arc::default(),
                engine: None,
                alive,
            });
            self.start(index).await;
        }
        for index in 0..self.scenario.jobs {
            self.register(&scope, index).await;
        }
        let end = Duration::from_secs(self.scenario.hours * 3600);
        while self.time.truth() < end {
            let wait = self.chance.bits() % (2 * self.scenario.fault_every) + 1;
            tokio::time::sleep(Duration::from_secs(wait)).await;
            self.misfortune().await;
            self.somebody_comes(&scope).await;
        }
        self.heal().await;
        let book = self.book.lock().unwrap().clone();
        checker::check(&checker::Evidence {
            scenario: &self.scenario,
            model: &self.model,
            scope,
            plan: &self.plan,
            triggered: &self.triggered,
            book: &book,
            until: self.time.db(),
            faults: self.faults
                + self.nodes.iter().map(|n| n.link.faults.load(Ordering::Relaxed)).sum::<u64>(),
        })
        .await
    }

    async fn start(&mut self, index: usize) {
        self.processes += 1;
        let (alive, listen) = watch::channel(true);
        let node = &mut self.nodes[index];
        node.alive = alive;
        let seed = self.chance.bits();
        let chance: Arc<dyn Chance> = Arc::new(RandomChance::from_seed(seed));
        let executor = SimExecutor {
            book: Arc::clone(&self.book),
            time: Arc::clone(&self.time) as Arc<dyn Time>,
            chance: Arc::clone(&chance),
            process: self.processes,
            alive: listen,
        };
        let store = FaultyStore {
            inner: self.model.clone(),
            link: Arc::clone(&node.link),
            chance: RandomChance::from_seed(seed ^ 1),
            bounds: Arc::clone(&self.bounds),
        };
        let settings = Settings {
            workers: 64,
            leases: self.scenario.leases,
            poll: self.scenario.poll,
            retention: Retention { every: Duration::from_secs(1_000_000), ..Retention::default() },
            ..Settings::new(format!("node-{index}"), node.identity)
        };
        let parts = Parts {
            store: Arc::new(store),
            registry: Arc::new(Registry::new().with(Arc::new(executor))),
            settings,
            clock: Arc::new(NodeClock(Arc::clone(&self.time))),
            chance,
        };
        // A node that cannot join now tries again, as its supervisor would.
        for _ in 0..1_000 {
            if let Ok(engine) = Engine::start(parts.clone()).await {
                node.engine = Some(engine);
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("node {index} never joins");
    }

    /// The process dies between two instructions.
    fn kill(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.engine = None;
        node.alive.send_replace(false);
    }

    /// Somebody creates a job or asks for a run, in the middle of it all. One in two wake-ups for it
    /// is lost.
    async fn somebody_comes(&mut self, scope: &Scope) {
        if self.plan.len() < 2 * self.scenario.jobs && self.chance.bits().is_multiple_of(4) {
            self.register(scope, self.plan.len()).await;
        }
        let index = self.chance.bits() as usize % self.plan.len();
        let (id, n) = (self.plan[index].id, self.chance.bits() as u32);
        if let Triggered::Accepted(key) =
            self.model.trigger(scope, id, n, Now::Database).await.unwrap()
        {
            self.triggered.push(key);
        }
        if self.chance.bits().is_multiple_of(2) {
            self.model.announce(Signal::Jobs).await.unwrap();
        }
    }

    async fn register(&mut self, scope: &Scope, index: usize) {
        let draw = |below: u64| self.chance.bits() % below;
        let secs = self.scenario.shortest * [1, 2, 5, 10, 30, 60][draw(6) as usize];
        let every = Span::from_secs(secs);
        let fails_percent = if index.is_multiple_of(4) { 30 } else { 0 };
        // Some run for so long that they are written down as long runs.
        let longest = if secs >= 60 { 40_000 } else { (secs * 400).min(3_000) };
        let definition = Definition {
            executor: ExecutorSpec {
                kind: "noop".into(),
                config: json!({ "ms": 1 + draw(longest), "fails_percent": fails_percent }),
            },
            // What must all run can only keep up if it is not always busy.
            overlap: match draw(3) {
                0 if (10..60).contains(&secs) => OverlapPolicy::Queue,
                _ => OverlapPolicy::Skip,
            },
            misfire: match draw(3) {
                0 if (10..60).contains(&secs) => MisfirePolicy::All,
                1 => MisfirePolicy::Skip,
                _ => MisfirePolicy::Last,
            },
            retry: RetryPolicy {
                max_retries: 2,
                backoff: Backoff::Fixed { delay: Span::from_secs(2) },
                jitter: Jitter::Symmetric { percent: 20 },
            },
            ..Definition::noop(Schedule::Interval(Interval::new(every, None).unwrap()))
        };
        let soon = self.time.db().saturating_add(Span::from_secs(2));
        let first = soon.saturating_add(Span::from_micros(draw(every.as_micros())));
        let id = JobId::new(self.time.db(), self.chance.ten_bytes());
        let job = NewJob {
            id,
            about: About::default(),
            definition: definition.clone(),
            next_at: Some(first),
        };
        let answers = self.model.register(scope, vec![job], Now::Database).await.unwrap();
        let Registered::Created(job) = answers[0] else { panic!("{answers:?}") };
        self.plan.push(Planned { job, id, first, every, definition });
    }

    /// One fault, of a kind that the scenario has.
    async fn misfortune(&mut self) {
        let mut kinds = Vec::new();
        if self.scenario.faults.crashes {
            kinds.extend(["crash", "restart", "drain"]);
        }
        if self.scenario.faults.store {
            kinds.extend(["outage", "partition", "flaky"]);
        }
        if self.scenario.faults.time {
            kinds.extend(["freeze", "clock"]);
        }
        if kinds.is_empty() {
            return;
        }
        self.faults += 1;
        let index = self.chance.bits() as usize % self.nodes.len();
        let long = Duration::from_secs(1 + self.chance.bits() % 40);
        match kinds[self.chance.bits() as usize % kinds.len()] {
            "crash" => {
                self.kill(index);
                tokio::time::sleep(long).await;
                self.start(index).await;
            }
            "restart" => {
                self.kill(index);
                self.start(index).await;
            }
            "drain" => {
                if let Some(engine) = self.nodes[index].engine.take() {
                    engine.drain(Duration::from_secs(2)).await;
                }
                self.nodes[index].alive.send_replace(false);
                self.start(index).await;
            }
            "outage" => {
                for node in &self.nodes {
                    node.link.down.store(true, Ordering::Relaxed);
                }
                tokio::time::sleep(long).await;
                for node in &self.nodes {
                    node.link.down.store(false, Ordering::Relaxed);
                }
            }
            "partition" => {
                self.nodes[index].link.down.store(true, Ordering::Relaxed);
                tokio::time::sleep(long).await;
                self.nodes[index].link.down.store(false, Ordering::Relaxed);
            }
            "flaky" => {
                let link = Arc::clone(&self.nodes[index].link);
                for (rate, value) in
                    [(&link.fail, 300), (&link.lose_answer, 300), (&link.late_commit, 100)]
                {
                    rate.store(value, Ordering::Relaxed);
                }
                tokio::time::sleep(long).await;
                for rate in [&link.fail, &link.lose_answer, &link.late_commit] {
                    rate.store(0, Ordering::Relaxed);
                }
            }
            "freeze" => {
                self.nodes[index].link.frozen.store(true, Ordering::Relaxed);
                tokio::time::sleep(long).await;
                self.nodes[index].link.thaw();
            }
            "clock" => {
                let step = (self.chance.bits() % 60_000_000) as i64 - 30_000_000;
                self.time.db_offset.fetch_add(step, Ordering::Relaxed);
            }
            other => unreachable!("{other}"),
        }
    }

    /// All faults end, and time passes until everything can have recovered.
    async fn heal(&mut self) {
        let leases = self.scenario.leases;
        let calm = Duration::from(leases.silent_after) * 2 + Duration::from(leases.grace) * 2;
        tokio::time::sleep(calm + Duration::from_secs(90)).await;
        for node in &mut self.nodes {
            if let Some(engine) = node.engine.take() {
                engine.drain(Duration::from_secs(20)).await;
            }
            node.alive.send_replace(false);
        }
    }
}
