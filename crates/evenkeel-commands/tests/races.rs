//! Tests of commands whose job changes between reading and writing.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::sync::{Arc, Mutex};

use evenkeel_commands::{
    Balance, CommandError, ControlCommand, Edit, EditMode, ExecutorCheck, Jobs,
};
use evenkeel_core::attempt::Outcome;
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, TenantNo, Timestamp};
use evenkeel_store::{Job, Scope, Store};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;
use evenkeel_store_testkit::rig::{Known, OVER, Rig};
use futures::FutureExt as _;
use serde_json::{Map, Value, json};

/// An action that a test runs while a command is being processed.
type Interference = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

fn run_interference(interference: &Interference) {
    let act = interference.lock().unwrap().take();
    if let Some(act) = act {
        act();
    }
}

struct Interrupting(Interference);

impl Chance for Interrupting {
    fn bits(&self) -> u64 {
        run_interference(&self.0);
        7
    }
}

struct Noop;

impl ExecutorCheck for Noop {
    fn check(&self, _: TenantNo, _: &str, _: &Value, _: &Value) -> Result<(), (String, String)> {
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        vec!["noop".into()]
    }
}

struct World {
    rig: Arc<futures::lock::Mutex<Rig>>,
    scope: Scope,
    jobs: Jobs,
    /// Action that runs after a command has read a job and before it changes the job.
    at_clock: Interference,
    /// Action that runs after a command has read a job and before it retries the job.
    at_bits: Interference,
}

impl World {
    async fn new() -> Self {
        let (at_clock, at_bits) = (Interference::default(), Interference::default());
        let clock = {
            let interference = Arc::clone(&at_clock);
            move || {
                run_interference(&interference);
                START
            }
        };
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(Arc::new(clock)));
        let opened = Opened { store: Arc::clone(&store), guard: Box::new(()), reopen: None };
        let chance = Arc::new(Interrupting(Arc::clone(&at_bits)));
        let balance = Balance::new(Arc::clone(&store), BalanceSettings::default());
        let jobs = Jobs::new(store, chance, Arc::new(Noop), balance);
        let rig = Rig::new(opened).await;
        let scope = rig.scope;
        Self { rig: Arc::new(futures::lock::Mutex::new(rig)), scope, jobs, at_clock, at_bits }
    }

    async fn create(&self, document: Value) -> Known {
        let job = self.jobs.create_or_find(&self.scope, &document).await.unwrap().job;
        Known { id: job.id, no: job.no }
    }

    /// Fires the next run of the job while a command is being processed, and lets the run fail. The
    /// model store never blocks, so firing a run completes at once.
    fn fire(&self, moment: &Interference, job: Known, secs: i64) {
        let rig = Arc::clone(&self.rig);
        let fire = move || {
            let fired = async move {
                let rig = rig.lock().await;
                let held = rig.start(job, secs).await;
                rig.finish(rig.end(held, Outcome::Failed, OVER)).await;
            };
            fired.now_or_never().unwrap();
        };
        *moment.lock().unwrap() = Some(Box::new(fire));
    }

    async fn update(&self, id: JobId, sent: Value) -> Result<Job, CommandError> {
        let edit = Edit { sent, mode: EditMode::Patch, if_generation: Some(vec![1]) };
        let shown = |_: &Job, _: Timestamp| Map::new();
        Ok(self.jobs.update(&self.scope, id, &edit, &shown).await?.0)
    }
}

/// Returns a job that runs at most twice, half an hour apart.
fn twice() -> Value {
    json!({"executor_type": "noop", "schedule": "@every 30m", "max_runs": 2})
}

#[tokio::test]
async fn change_is_decided_again_after_a_fire() {
    let world = World::new().await;
    let job = world.create(twice()).await;
    world.fire(&world.at_clock, job, 1800);
    // A run is fired while the change is processed, so a `max_runs` of 1 leaves no further run.
    let changed = world.update(job.id, json!({"max_runs": 1})).await.unwrap();
    assert_eq!((changed.fired, changed.next_at), (1, None));
    assert_eq!(changed.definition.bounds.max_runs, Some(1));
}

#[tokio::test]
async fn retry_with_a_generation_succeeds_despite_a_fire() {
    let world = World::new().await;
    let job = world.create(twice()).await;
    world.fire(&world.at_bits, job, 1800);
    run_interference(&world.at_bits);
    world.fire(&world.at_bits, job, 3600);
    let done =
        world.jobs.control(&world.scope, job.id, ControlCommand::Retry, Some(&[1])).await.unwrap();
    let job = done.job.unwrap();
    assert_eq!((job.fired, job.next_at, job.generation), (2, None, 2));
    assert_eq!(done.run.unwrap().scheduled_at, at(0));
}
