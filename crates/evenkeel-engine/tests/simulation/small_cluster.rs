//! A small cluster whose attempts only wait and are counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::job::{DEFAULT_POOL, ExecutorSpec};
use evenkeel_core::lease::LeaseTimings;
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Once};
use evenkeel_core::{
    About, AttemptKey, AttemptNo, Definition, JobId, JobNo, RunIds, Schedule, Span, TenantNo,
    Timestamp,
};
use evenkeel_engine::{Engine, EngineParts, RandomChance, Retention, Settings};
use evenkeel_executors::{
    ConfigFault, Executor, ExecutorDeclaration, Invocation, NOOP, Registry, Report,
};
use evenkeel_store::{
    EventStore, JobStore, NewJob, Now, Registered, Role, Roles, Scope, Signal, Store, Trigger,
    Triggered,
};
use evenkeel_store_testkit::model::ModelStore;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::body::Time;
use crate::faulty::{FaultyStore, Link};
use crate::policies::blackout_overlap;
use crate::world::{NodeClock, SimTime};

/// What the executed attempts recorded.
#[derive(Default)]
pub struct Seen {
    pub runs: u64,
    /// Attempts with their start time on the database's clock, or `None` if starts are not
    /// recorded.
    pub starts: Option<Vec<(AttemptKey, Timestamp)>>,
    running: BTreeMap<JobNo, u32>,
    pub violations: Vec<String>,
}

/// An executor whose attempts take the configured duration, plus or minus half of it. Some attempts
/// fail.
struct CountingExecutor {
    time: Arc<SimTime>,
    seen: Arc<Mutex<Seen>>,
}

struct Body<'a> {
    executor: &'a CountingExecutor,
    definition: &'a Definition,
    key: AttemptKey,
    began: Timestamp,
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        let ended = self.executor.time.db();
        let mut seen = self.executor.seen.lock().unwrap();
        *seen.running.entry(self.key.job_no).or_default() -= 1;
        for period in &self.definition.blackout_periods {
            let blackout = blackout_overlap(period, self.began.as_micros(), ended.as_micros());
            if blackout > 100_000 {
                seen.violations.push(format!("{:?} ran in a blackout for {blackout} us", self.key));
            }
        }
    }
}

/// Returns a number that depends only on the attempt and `salt`.
fn drawn(key: AttemptKey, salt: u64) -> u64 {
    let mixed = key.scheduled_at.as_micros() as u64 ^ (key.job_no.0 as u64) << 40;
    let mixed = (mixed ^ u64::from(key.attempt.0) << 32 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

#[async_trait]
impl Executor for CountingExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &NOOP
    }

    fn check(&self, _: TenantNo, _config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
        Ok(())
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let (key, definition) = (invocation.key, &*invocation.definition);
        let number = |name: &str| definition.executor.config[name].as_u64().unwrap_or(0);
        let mean = number("mean_ms").max(1);
        let length = Duration::from_millis(mean / 2 + drawn(key, 1) % mean);
        let config = &definition.executor.config;
        let fails = drawn(key, 2) % 1000 < number("fails_permille")
            || (config["fails_first"] == true && key.attempt == AttemptNo::FIRST);
        let began = self.time.db();
        {
            let mut seen = self.seen.lock().unwrap();
            seen.runs += 1;
            if let Some(starts) = &mut seen.starts {
                starts.push((key, began));
            }
            let running = seen.running.entry(key.job_no).or_default();
            *running += 1;
            if *running > 1 {
                seen.violations.push(format!("{key:?} overlaps another run of its job"));
            }
        }
        let _body = Body { executor: self, definition, key, began };
        tokio::select! {
            biased;
            reason = invocation.cancel.cancelled() => Report::cancelled(reason),
            () = tokio::time::sleep(length) => match fails {
                true => Report::failed("simulated failure"),
                false => Report::completed(),
            },
        }
    }
}

pub struct SmallCluster {
    pub time: Arc<SimTime>,
    pub model: ModelStore,
    pub seen: Arc<Mutex<Seen>>,
    /// Poll interval. Leases and other intervals are multiples of the poll interval.
    pub poll: Duration,
    /// Aging settings of nodes that are started from now on.
    pub aging: Aging,
    /// Roles of nodes that are started from now on.
    pub roles: Roles,
    /// Pools of nodes that are started from now on.
    pub pools: Vec<String>,
    /// Number of schedulers per node. If `schedulers` is set, store calls take time and some
    /// signals are lost.
    pub schedulers: Option<usize>,
    /// The connection of the nodes to the store, or `None` if the store has no simulated faults.
    pub link: Option<Arc<Link>>,
}

impl SmallCluster {
    pub fn new(poll: Duration) -> Self {
        let time = SimTime::begin();
        let clock = Arc::clone(&time);
        let model = ModelStore::new(Arc::new(move || clock.db()));
        Self {
            time,
            model,
            seen: Arc::default(),
            poll,
            aging: Aging::default(),
            roles: Roles::ALL,
            pools: vec![DEFAULT_POOL.into()],
            schedulers: None,
            link: None,
        }
    }

    fn store(&self, identity: Uuid) -> Arc<dyn Store> {
        let inner = self.model.clone();
        if self.schedulers.is_none() && self.link.is_none() {
            return Arc::new(inner);
        }
        let inner = inner.with_parallel_batches(self.schedulers.unwrap_or(1));
        let chance = RandomChance::from_seed(identity.as_u128() as u64);
        FaultyStore::wrap(inner, self.link.clone().unwrap_or_default(), chance)
    }

    pub async fn start(&self, name: &str, workers: usize) -> Engine {
        let span = |times: u32| Span::from(self.poll * times);
        let leases = LeaseTimings { ping: span(1), silent_after: span(3), grace: span(3) };
        let identity =
            Uuid::from_u128(name.bytes().fold(1, |all, byte| all << 8 | u128::from(byte)));
        let settings = Settings {
            workers,
            roles: self.roles,
            pools: self.pools.clone(),
            leases,
            poll: self.poll,
            look_ahead: span(2),
            stall: self.poll / 20,
            progress_every: self.poll,
            metrics_interval: self.poll * 5,
            queue_metrics_every: self.poll * 15,
            aging: self.aging,
            balance_score_every: Duration::from_secs(7 * 86_400),
            retention: Retention {
                per_job: 5,
                every: Duration::from_secs(7 * 86_400),
                ..Retention::default()
            },
            ..Settings::new(name, identity)
        };
        let executor =
            CountingExecutor { time: Arc::clone(&self.time), seen: Arc::clone(&self.seen) };
        let parts = EngineParts {
            store: self.store(identity),
            registry: Arc::new(Registry::new().with(Arc::new(executor))),
            settings,
            clock: Arc::new(NodeClock(Arc::clone(&self.time))),
            chance: Arc::new(RandomChance::from_seed(workers as u64)),
            run_ids: RunIds::new(b"test"),
        };
        Engine::start(parts).await.unwrap()
    }
}

impl SmallCluster {
    pub async fn scope(&self) -> Scope {
        Scope { tenant: self.model.tenant("sim").await.unwrap(), role: Role::Admin }
    }

    pub async fn register(&self, definition: Definition) -> JobNo {
        let (scope, now) = (self.scope().await, self.time.db());
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.model.census().await.unwrap().jobs.to_be_bytes());
        let job = NewJob {
            id: JobId::new(now, bytes),
            about: About::default(),
            next_at: definition.timetable().first_after(now),
            definition,
        };
        let answers = self.model.register(&scope, vec![job], Now::Database).await.unwrap();
        let Registered::Created { no, .. } = answers[0] else { panic!("{answers:?}") };
        self.model.announce(Signal::Jobs).await.unwrap();
        no
    }
}

impl SmallCluster {
    pub fn record_starts(&self) {
        self.seen.lock().unwrap().starts = Some(Vec::new());
    }

    /// Returns a schedule with one run, `secs` seconds from now.
    pub fn once_in(&self, secs: u64) -> Schedule {
        let at = self.time.db().saturating_add(Span::from_secs(secs));
        Schedule::Once(Once { at: Some(at), tolerance: None })
    }

    pub async fn trigger(&self, no: JobNo, priority: Option<u8>) -> Triggered {
        let title = self.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
        let priority = priority.and_then(|number| Priority::try_from(number).ok());
        let trigger = Trigger { n: 0, priority, idle_only: false };
        self.model.trigger(&self.scope().await, title.id, trigger, Now::Database).await.unwrap()
    }
}

pub fn every(secs: u64) -> Schedule {
    Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap())
}

pub async fn pass(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

/// Returns a job whose runs take `mean_ms`, plus or minus half of it.
pub fn job(schedule: Schedule, mean_ms: u64) -> Definition {
    let config = json!({ "mean_ms": mean_ms });
    Definition {
        executor: ExecutorSpec { kind: "noop".into(), config },
        ..Definition::noop(schedule)
    }
}

/// Runs `scenario` with Tokio's clock paused, so time passes only while all tasks wait.
pub fn run_paused<T>(scenario: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(scenario)
}
