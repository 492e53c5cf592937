//! Commands that are overtaken between what they read and what they order.
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

/// What happens at a moment when nobody looks.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

fn happen(meanwhile: &Meanwhile) {
    let act = meanwhile.lock().unwrap().take();
    if let Some(act) = act {
        act();
    }
}

struct Interrupting(Meanwhile);

impl Chance for Interrupting {
    fn bits(&self) -> u64 {
        happen(&self.0);
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
    /// Happens after a job was read that is to be changed.
    at_clock: Meanwhile,
    /// Happens after a job was read that is to be tried again.
    at_bits: Meanwhile,
}

impl World {
    async fn new() -> Self {
        let (at_clock, at_bits) = (Meanwhile::default(), Meanwhile::default());
        let clock = {
            let meanwhile = Arc::clone(&at_clock);
            move || {
                happen(&meanwhile);
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
        let job = self.jobs.create(&self.scope, &document).await.unwrap();
        Known { id: job.id, no: job.no }
    }

    /// The next time of the job is fired at that moment, and fails. The model never waits.
    fn fire(&self, moment: &Meanwhile, job: Known, secs: i64) {
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

/// Runs twice at most, each half an hour.
fn twice() -> Value {
    json!({"executor_type": "noop", "schedule": "@every 30m", "max_runs": 2})
}

#[tokio::test]
async fn a_change_that_a_fire_overtakes_is_decided_again_on_what_is_left() {
    let world = World::new().await;
    let job = world.create(twice()).await;
    world.fire(&world.at_clock, job, 1800);
    // One is fired meanwhile, so that none is left.
    let changed = world.update(job.id, json!({"max_runs": 1})).await.unwrap();
    assert_eq!((changed.fired, changed.next_at), (1, None));
    assert_eq!(changed.definition.bounds.max_runs, Some(1));
}

#[tokio::test]
async fn a_retry_of_one_version_goes_through_although_a_fire_overtakes_it() {
    let world = World::new().await;
    let job = world.create(twice()).await;
    world.fire(&world.at_bits, job, 1800);
    happen(&world.at_bits);
    world.fire(&world.at_bits, job, 3600);
    let done =
        world.jobs.control(&world.scope, job.id, ControlCommand::Retry, Some(&[1])).await.unwrap();
    let job = done.job.unwrap();
    assert_eq!((job.fired, job.next_at, job.generation), (2, None, 2));
    assert_eq!(done.run.unwrap().scheduled_at, at(0));
}
