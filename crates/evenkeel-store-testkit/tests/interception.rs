//! Wrappers of a store intercept every store operation in one place and pass its arguments on
//! unchanged.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::any::Any;
use std::sync::{Arc, Mutex};

use evenkeel_store::{Intercept, Intercepted, OwnedCall, Relay, Relayed, Store, StoreError, Verb};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{START, new_job};
use evenkeel_store_testkit::model::ModelStore;
use evenkeel_store_testkit::rig::Rig;

type Seen = Arc<Mutex<Vec<(&'static str, &'static str, bool)>>>;

struct Recorder {
    model: ModelStore,
    seen: Seen,
}

impl Recorder {
    fn new() -> (Self, Seen) {
        let (model, seen) = (ModelStore::new(Arc::new(|| START)), Seen::default());
        (Self { model, seen: Arc::clone(&seen) }, seen)
    }

    fn record(&self, verb: Verb) {
        self.seen.lock().unwrap().push((verb.store, verb.name, verb.writes));
    }
}

impl Intercept for Recorder {
    fn inner(&self) -> &dyn Store {
        &self.model
    }

    async fn around<T: Any + Send>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.record(verb);
        call.await
    }
}

impl Relay for Recorder {
    type Inner = ModelStore;

    fn inner(&self) -> &ModelStore {
        &self.model
    }

    async fn relay<T: Any + Send>(
        &self,
        verb: Verb,
        call: OwnedCall<ModelStore, T>,
    ) -> Result<T, StoreError> {
        self.record(verb);
        let later = tokio::spawn(call(self.model.clone()));
        later.await.expect("the call does not panic")
    }
}

async fn runs_a_job_through(store: Arc<dyn Store>, seen: Seen) {
    let rig = Rig::new(Opened { store, guard: Box::new(()), reopen: None }).await;
    let job = rig.add(new_job("report").build()).await;
    rig.run_successfully(job, 60).await;
    let found = rig.store.jobs_named(&rig.scope, "report", 9).await.unwrap();
    assert_eq!((found.len(), found[0].id), (1, job.id));
    assert_eq!(rig.store.load_jobs(&[job.no]).await.unwrap().len(), 1);
    assert_eq!(rig.store.now().await.unwrap(), START);
    rig.trigger(job, 0, 62).await;
    assert_eq!(rig.claim(1, 61).await, [], "nothing is queued");
    let seen = seen.lock().unwrap();
    for verb in [
        ("Store", "tenant", true),
        ("NodeStore", "join", true),
        ("JobStore", "register", true),
        ("JobStore", "jobs_named", false),
        ("ScheduleStore", "fire", true),
        ("AttemptStore", "finish", true),
        ("AttemptStore", "claim", true),
        ("JobStore", "trigger", true),
        ("Store", "now", false),
    ] {
        assert!(seen.contains(&verb), "{verb:?} of {seen:?}");
    }
}

#[tokio::test]
async fn an_intercepted_store_passes_every_call_on() {
    let (recorder, seen) = Recorder::new();
    runs_a_job_through(Arc::new(Intercepted(recorder)), seen).await;
}

#[tokio::test]
async fn a_relayed_store_passes_owned_arguments_on() {
    let (recorder, seen) = Recorder::new();
    runs_a_job_through(Arc::new(Relayed(recorder)), seen).await;
}
