//! Tests of commands on an in-memory store.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_commands::{
    Balance, CommandError, Conflict, ControlCommand, ExecutorCheck, Jobs, Runs, TriggerResult,
    read_job,
};
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Origin, RunIds, Schedule, Span, TenantNo, Timestamp};
use evenkeel_store::{Applied, PageRequest, Role, Scope, Store};
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
    let balance = Balance::new(store.clone(), BalanceSettings::default());
    (
        Jobs::new(store.clone(), chance, Arc::new(OnlyNoop), balance),
        Runs::new(store, RunIds::new(b"test")),
        scope,
    )
}

/// True if the time is at most half an hour from now.
fn is_within_an_interval(time: Option<Timestamp>) -> bool {
    time.is_some_and(|time| at(0) < time && time <= at(1800))
}

fn named(name: &str) -> Value {
    json!({"name": name, "executor_type": "noop", "schedule": "@every 30m"})
}

#[tokio::test]
async fn new_job_first_runs_within_one_interval() {
    let (jobs, _, scope) = open().await;
    let job = jobs.create_or_find(&scope, &named("news")).await.unwrap().job;
    assert_eq!(job.created_at, at(0));
    assert!(is_within_an_interval(job.next_at), "{:?}", job.next_at);
    assert_eq!(jobs.get(&scope, job.id).await.unwrap(), job);
}

#[tokio::test]
async fn taken_name_does_not_affect_other_jobs_of_a_batch() {
    let (jobs, _, scope) = open().await;
    let taken = jobs.create_or_find(&scope, &named("a")).await.unwrap().job.id;
    let specs = ["b", "a", "c", "b"]
        .map(|name| read_job(&named(name), TenantNo(1), jobs.executors()).unwrap());
    let created = jobs.create_each(&scope, specs.to_vec()).await.unwrap();
    let [Ok(b), Err(second), Ok(_), Err(fourth)] = &created[..] else { panic!("{created:?}") };
    assert!(matches!(second, CommandError::NameTaken { id } if *id == taken));
    assert!(matches!(fourth, CommandError::NameTaken { id } if *id == b.id));
    let all = jobs.admin_list(&scope, None, PageRequest::first(10)).await.unwrap();
    assert_eq!(all.total, 3);
}

#[tokio::test]
async fn faulty_document_changes_nothing() {
    let (jobs, _, scope) = open().await;
    let refused =
        jobs.create_or_find(&scope, &json!({"executor_type": "noop", "priority": 101})).await;
    assert!(matches!(refused, Err(CommandError::Invalid(faults)) if faults[0].field == "priority"));
    let all = jobs.admin_list(&scope, None, PageRequest::first(10)).await.unwrap();
    assert_eq!(all.total, 0);
}

#[tokio::test]
async fn busy_job_is_not_triggered_again() {
    let (jobs, _, scope) = open().await;
    let job = jobs.create_or_find(&scope, &named("news")).await.unwrap().job;
    let accepted = jobs.request_run(&scope, job.id, None, false).await.unwrap();
    let TriggerResult::New(key) = accepted else { panic!("{accepted:?}") };
    assert_eq!(key.sequence.origin(), Origin::Trigger);
    let again = jobs.request_run(&scope, job.id, None, false).await;
    assert!(matches!(again, Err(CommandError::Conflict(Conflict::Busy))));
}

#[tokio::test]
async fn unknown_ids_are_not_found() {
    let (jobs, runs, scope) = open().await;
    let nobody = JobId::new(START, [9; 10]);
    let page = PageRequest::first(10);
    assert!(matches!(jobs.get(&scope, nobody).await, Err(CommandError::NotFound)));
    assert!(matches!(jobs.delete(&scope, nobody, false, None).await, Err(CommandError::NotFound)));
    assert!(matches!(
        jobs.request_run(&scope, nobody, None, false).await,
        Err(CommandError::NotFound)
    ));
    let listed = runs.list(&scope, Some(nobody), page).await;
    assert!(matches!(listed, Err(CommandError::NotFound)));
    assert_eq!(runs.list(&scope, None, page).await.unwrap().total, 0);
}

async fn created(more: Value) -> (Jobs, Scope, Result<evenkeel_store::Job, CommandError>) {
    let (jobs, _, scope) = open().await;
    let mut document = json!({"executor_type": "noop"});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let job = jobs.create_or_find(&scope, &document).await.map(|made| made.job);
    (jobs, scope, job)
}

#[tokio::test]
async fn schedule_is_resolved_when_its_job_is_created() {
    let (_, _, job) = created(json!({"schedule": "P1M"})).await;
    let job = job.unwrap();
    assert!(matches!(job.definition.schedule, Schedule::Calendar(it) if it.anchor == Some(START)));
    let mut minutes = std::collections::BTreeSet::new();
    let (jobs, _, scope) = open().await;
    for _ in 0..50 {
        let document = json!({"executor_type": "noop", "schedule": "H * * * *"});
        let job = jobs.create_or_find(&scope, &document).await.unwrap().job;
        minutes.insert(job.next_at.unwrap().since(START));
    }
    assert!(minutes.len() > 20, "{minutes:?}");
}

#[tokio::test]
async fn job_for_a_past_time_runs_now() {
    let once = json!({"schedule": {"kind": "once", "at": "2001-01-01T00:00:00Z"}});
    assert_eq!(created(once).await.2.unwrap().next_at, Some(START));
    assert_eq!(created(json!({"scheduling_period": "24h"})).await.2.unwrap().next_at, Some(START));
}

#[tokio::test]
async fn job_without_a_future_time_is_refused() {
    for document in [
        json!({"schedule": "30m", "end_at": START.to_string()}),
        json!({"schedule": "R5/2001-01-01T00:00:00Z/PT30M"}),
        json!({"schedule": "0 9 29 2 *", "end_at": at(86_400).to_string()}),
    ] {
        let Err(CommandError::Invalid(faults)) = created(document.clone()).await.2 else {
            panic!("{document}")
        };
        assert_eq!(faults[0].field, "end_at", "{}", faults[0]);
    }
}

#[tokio::test]
async fn next_times_end_with_the_last_run() {
    let (jobs, scope, job) = created(json!({"schedule": "30m", "max_runs": 2})).await;
    let job = job.unwrap();
    let seen = jobs.next_times(&scope, job.id, 10).await.unwrap();
    let times: Vec<_> = seen.times.iter().map(|time| time.utc).collect();
    let first = job.next_at.unwrap();
    assert!(is_within_an_interval(Some(first)), "{first}");
    assert_eq!(times, [first, first.saturating_add(Span::from_secs(1800))]);
}

#[tokio::test]
async fn periodic_job_has_the_window_of_its_document() {
    let more = json!({"scheduling_period": "24h", "average_duration_override": "1h"});
    let (jobs, scope, job) = created(more).await;
    let seen = jobs.condition(&scope, job.unwrap().id).await.unwrap();
    assert_eq!((seen.can_start_by, seen.should_start_by), (Some(START), Some(at(23 * 3600))));
    assert_eq!(seen.condition.deadline, Some(at(24 * 3600)));
}

#[tokio::test]
async fn control_many_answers_in_request_order() {
    let (jobs, _, scope) = open().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(jobs.create_or_find(&scope, &named(name)).await.unwrap().job.id);
    }
    jobs.control(&scope, ids[1], ControlCommand::Pause, None).await.unwrap();
    let nobody = JobId::new(at(7), [7; 10]);
    let asked = [ids[2], nobody, ids[1], ids[0], ids[2]];
    let answers = jobs.control_many(&scope, &asked, ControlCommand::Pause, None).await.unwrap();
    assert!(matches!(answers[0], Applied::Done(_)));
    assert_eq!(answers[1], Applied::NotFound);
    assert!(matches!(answers[2], Applied::NotAllowed(_)));
    assert!(matches!(answers[3], Applied::Done(_)));
    assert_eq!(answers[4], answers[0], "a repeated job is changed once");
    let resumed = jobs.control_many(&scope, &ids, ControlCommand::Resume, None).await.unwrap();
    for answer in resumed {
        let Applied::Done(done) = answer else { panic!("{answer:?}") };
        assert!(is_within_an_interval(done.job.unwrap().next_at));
    }
}

#[tokio::test]
async fn command_with_a_generation_refuses_a_changed_job() {
    let (jobs, _, scope) = open().await;
    let id = jobs.create_or_find(&scope, &named("a")).await.unwrap().job.id;
    jobs.control(&scope, id, ControlCommand::Pause, Some(&[1])).await.unwrap();
    for ask in [ControlCommand::Resume, ControlCommand::Cancel, ControlCommand::Delete] {
        let refused = jobs.control(&scope, id, ask, Some(&[1])).await;
        assert!(matches!(refused, Err(CommandError::Stale { generation: 2 })), "{refused:?}");
    }
    let resumed = jobs.control(&scope, id, ControlCommand::Resume, Some(&[7, 2])).await.unwrap();
    assert_eq!(resumed.job.unwrap().generation, 3);
}
