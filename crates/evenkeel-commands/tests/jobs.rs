//! Commands on a store in memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_commands::{CommandError, Conflict, Created, ExecutorCheck, Jobs, Runs, read_job};
use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Origin, TenantNo};
use evenkeel_store::{JobFilter, PageRequest, Role, Scope, Store};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;
use serde_json::{Value, json};

struct Counting(AtomicU64);

impl Chance for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
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

async fn open() -> (Jobs, Runs, Scope) {
    let store: Arc<dyn Store> = Arc::new(ModelStore::new(Arc::new(|| START)));
    let scope = Scope { tenant: store.tenant("main").await.unwrap(), role: Role::Operator };
    let chance = Arc::new(Counting(AtomicU64::new(0)));
    (Jobs::new(store.clone(), chance, Arc::new(OnlyNoop)), Runs::new(store), scope)
}

fn named(name: &str) -> Value {
    json!({"name": name, "executor_type": "noop", "schedule": "@every 30m"})
}

#[tokio::test]
async fn a_created_job_first_runs_one_interval_from_the_stores_now() {
    let (jobs, _, scope) = open().await;
    let job = jobs.create(&scope, &named("news")).await.unwrap();
    assert_eq!((job.next_at, job.created_at), (Some(at(1800)), at(0)));
    assert_eq!(jobs.get(&scope, job.id).await.unwrap(), job);
}

#[tokio::test]
async fn of_many_jobs_one_whose_name_is_taken_does_not_spoil_the_others() {
    let (jobs, _, scope) = open().await;
    let taken = jobs.create(&scope, &named("a")).await.unwrap().id;
    let specs = ["b", "a", "c", "b"]
        .map(|name| read_job(&named(name), TenantNo(1), jobs.executors()).unwrap());
    let created = jobs.create_many(&scope, specs.to_vec()).await.unwrap();
    let Created::New(b) = created[0] else { panic!("{created:?}") };
    assert!(matches!(created[2], Created::New(_)));
    assert_eq!((created[1], created[3]), (Created::NameTaken(taken), Created::NameTaken(b)));
    let all = jobs.list(&scope, &JobFilter::default(), PageRequest::first(10)).await.unwrap();
    assert_eq!(all.total, 3);
}

#[tokio::test]
async fn a_wrong_document_changes_nothing() {
    let (jobs, _, scope) = open().await;
    let refused = jobs.create(&scope, &json!({"executor_type": "noop", "priority": 101})).await;
    assert!(matches!(refused, Err(CommandError::Invalid(faults)) if faults[0].field == "priority"));
    let all = jobs.list(&scope, &JobFilter::default(), PageRequest::first(10)).await.unwrap();
    assert_eq!(all.total, 0);
}

#[tokio::test]
async fn a_busy_job_is_not_triggered_again() {
    let (jobs, _, scope) = open().await;
    let job = jobs.create(&scope, &named("news")).await.unwrap();
    let accepted = jobs.trigger(&scope, job.id).await.unwrap();
    assert_eq!((accepted.job, accepted.key.sequence.origin()), (job.id, Origin::Trigger));
    let again = jobs.trigger(&scope, job.id).await;
    assert!(matches!(again, Err(CommandError::Conflict(Conflict::Busy))));
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let (jobs, runs, scope) = open().await;
    let nobody = JobId::new(START, [9; 10]);
    let page = PageRequest::first(10);
    assert!(matches!(jobs.get(&scope, nobody).await, Err(CommandError::NotFound)));
    assert!(matches!(jobs.delete(&scope, nobody).await, Err(CommandError::NotFound)));
    assert!(matches!(jobs.trigger(&scope, nobody).await, Err(CommandError::NotFound)));
    let listed = runs.list_of_job(&scope, nobody, page).await;
    assert!(matches!(listed, Err(CommandError::NotFound)));
    assert_eq!(runs.list(&scope, page).await.unwrap().total, 0);
}
