//! The simulated cluster with its jobs, clients and faults.

mod commands;
mod faults;
mod jobs;
mod overrides;
mod scenario;
mod time;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::{AttemptKey, RunIds};
use evenkeel_engine::{Engine, EngineParts, RandomChance, Retention, Settings};
use evenkeel_executors::Registry;
use evenkeel_store::{JobStore, Now, Role, Scope, Signal, Store, Triggered};
use evenkeel_store_testkit::fixtures::plain_trigger;
use evenkeel_store_testkit::model::ModelStore;
use tokio::sync::watch;
use uuid::Uuid;

pub use commands::ScheduleChange;
pub use jobs::{PlannedJob, Timing};
pub use overrides::Override;
pub use scenario::{Faults, Outcome, Scenario};
pub use time::{NodeClock, SimTime};

use crate::body::{BodyRecords, SimExecutor, Time};
use crate::checker;
use crate::faulty::{FaultyStore, Link};
use crate::limit_checks;

struct SimNode {
    identity: Uuid,
    link: Arc<Link>,
    engine: Option<Engine>,
    alive: watch::Sender<bool>,
}

struct World {
    scenario: Scenario,
    chance: Arc<RandomChance>,
    time: Arc<SimTime>,
    model: ModelStore,
    records: BodyRecords,
    plan: Vec<PlannedJob>,
    triggered: Vec<AttemptKey>,
    overrides: Vec<Override>,
    nodes: Vec<SimNode>,
    faults: u64,
    processes: u32,
    /// Descriptions of faults during which loops retried too often.
    retry_violations: Vec<String>,
}

pub fn run(scenario: Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(scenario);
        world.run_paused().await
    })
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let time = SimTime::begin();
        let clock = Arc::clone(&time);
        Self {
            chance: Arc::new(RandomChance::from_seed(scenario.seed)),
            model: ModelStore::new(Arc::new(move || clock.db())),
            time,
            records: Arc::new(Mutex::new(Vec::new())),
            plan: Vec::new(),
            triggered: Vec::new(),
            overrides: Vec::new(),
            nodes: Vec::new(),
            faults: 0,
            processes: 0,
            retry_violations: Vec::new(),
            scenario,
        }
    }

    async fn run_paused(&mut self) -> Outcome {
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
        let idle_permits = Arc::new(Mutex::new(Vec::new()));
        let faults = self.scenario.faults;
        if self.scenario.limits && !(faults.crashes || faults.store || faults.time) {
            let (model, limits) = (self.model.clone(), self.scenario.limits());
            tokio::spawn(limit_checks::watch_idle_permits(
                model,
                limits,
                Arc::clone(&idle_permits),
            ));
        }
        let end = Duration::from_secs(self.scenario.hours * 3600);
        while self.time.true_time() < end {
            let wait = self.chance.bits() % (2 * self.scenario.fault_every) + 1;
            tokio::time::sleep(Duration::from_secs(wait)).await;
            self.inject_fault(&scope).await;
            self.create_jobs_and_triggers(&scope).await;
            if self.scenario.commands {
                self.send_command(&scope).await;
            }
            if self.scenario.overrides {
                self.override_outcomes(&scope).await;
            }
        }
        let idle_permits = std::mem::take(&mut *idle_permits.lock().unwrap());
        self.heal().await;
        let records = self.records.lock().unwrap().clone();
        let mut outcome = checker::check(&checker::Evidence {
            scenario: &self.scenario,
            model: &self.model,
            scope,
            plan: &self.plan,
            triggered: &self.triggered,
            overrides: &self.overrides,
            records: &records,
            until: self.time.db(),
            faults: self.faults
                + self.nodes.iter().map(|n| n.link.faults.load(Ordering::Relaxed)).sum::<u64>(),
        })
        .await;
        outcome.violations.extend(idle_permits);
        outcome.violations.append(&mut self.retry_violations);
        outcome
    }

    async fn start(&mut self, index: usize) {
        self.processes += 1;
        let (alive, listen) = watch::channel(true);
        let node = &mut self.nodes[index];
        node.alive = alive;
        let seed = self.chance.bits();
        let chance: Arc<dyn Chance> = Arc::new(RandomChance::from_seed(seed));
        let executor = SimExecutor {
            records: Arc::clone(&self.records),
            time: Arc::clone(&self.time) as Arc<dyn Time>,
            chance: Arc::clone(&chance),
            process: self.processes,
            node: index,
            alive: listen,
        };
        // The store processes one batch at a time, as SQLite does, or two, as PostgreSQL does.
        let parallel_batches = 1 + (self.scenario.seed % 2) as usize;
        let model = self.model.clone().with_parallel_batches(parallel_batches);
        let chance_of_faults = RandomChance::from_seed(seed ^ 1);
        let store = FaultyStore::wrap(model, Arc::clone(&node.link), chance_of_faults);
        let settings = Settings {
            workers: self.scenario.workers,
            leases: self.scenario.leases,
            poll: self.scenario.poll,
            progress_every: (self.scenario.poll / 4).max(Duration::from_secs(1)),
            metrics_interval: (self.scenario.poll * 2).max(Duration::from_secs(5)),
            retention: Retention { every: Duration::from_secs(1_000_000), ..Retention::default() },
            balance_score_every: Duration::from_secs(3600),
            limits: self.scenario.limits(),
            ..Settings::new(format!("node-{index}"), node.identity)
        };
        let parts = EngineParts {
            store,
            registry: Arc::new(Registry::new().with(Arc::new(executor))),
            settings,
            clock: Arc::new(NodeClock(Arc::clone(&self.time))),
            chance,
            run_ids: RunIds::new(b"test"),
        };
        // A node that cannot join the cluster tries again, as a process supervisor would restart
        // it.
        for _ in 0..1_000 {
            if let Ok(engine) = Engine::start(parts.clone()).await {
                node.engine = Some(engine);
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("node {index} never joins");
    }

    fn kill(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.engine = None;
        node.alive.send_replace(false);
    }

    /// Creates and triggers jobs at random. Half of the signals about new jobs and triggers are
    /// lost.
    async fn create_jobs_and_triggers(&mut self, scope: &Scope) {
        if self.plan.len() < 2 * self.scenario.jobs && self.chance.bits().is_multiple_of(4) {
            self.register(scope, self.plan.len()).await;
        }
        let index = self.chance.bits() as usize % self.plan.len();
        let (id, n) = (self.plan[index].id, self.chance.bits() as u32);
        if let Triggered::Accepted(key) =
            self.model.trigger(scope, id, plain_trigger(n), Now::Database).await.unwrap()
        {
            self.triggered.push(key);
        }
        if self.chance.bits().is_multiple_of(2) {
            self.model.announce(Signal::Jobs).await.unwrap();
        }
    }

    /// Waits without faults until the cluster must have recovered. Then drains all nodes.
    async fn heal(&mut self) {
        let leases = self.scenario.leases;
        let recovery = Duration::from(leases.silent_after) * 2 + Duration::from(leases.grace) * 2;
        tokio::time::sleep(recovery + Duration::from_secs(90)).await;
        for node in &mut self.nodes {
            if let Some(engine) = node.engine.take() {
                engine.drain(Duration::from_secs(20)).await;
            }
            node.alive.send_replace(false);
        }
    }
}
