//! Tests that finishing, evaluating, deleting and replacing the same jobs concurrently leaves
//! conditions consistent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::condition::Reason;
use evenkeel_core::{JobNo, Shard, Timestamp};
use evenkeel_store::{
    DueJob, Finish, FinishResult, Fire, Judgement, OwnedAttempt, Store, Supersede,
};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::commands::Commands;
use evenkeel_store_testkit::fixtures::{Begin, at, fire_of, new_job, now, unnamed_job};
use evenkeel_store_testkit::rig::{ALPHA, Held, Known, OVER, Rig, delayed_fire_of};
use futures::future::join_all;
use tokio_postgres::Client;

async fn rig(store: PostgresStore) -> Rig {
    Rig::new(Opened { store: Arc::new(store), guard: Box::new(()), reopen: None }).await
}

fn all_shards() -> Vec<Shard> {
    (0..=255).map(Shard).collect()
}

/// Evaluates all jobs that are due for evaluation, with `reason` as the result. If a job is OK, its
/// stored condition is deleted.
async fn judge_all(store: &dyn Store, reason: impl Fn(JobNo) -> Reason) {
    let due = store.to_judge(&all_shards(), 1000, now(1000)).await.unwrap();
    let judgement = |job: &evenkeel_store::JobToJudge| {
        let reason = reason(job.no);
        let again_at = (reason != Reason::OnTime).then_some(Timestamp::MAX);
        Judgement { job: job.no, touched: job.touched, reason, error_at: at(2000), again_at }
    };
    store.judge(due.jobs.iter().map(judgement).collect(), now(1000)).await.unwrap();
}

async fn wait_for_waiting(observer: &Client, options: &PostgresOptions, count: i64) {
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let name = &options.application_name;
    while observer.query_one(waits, &[name]).await.unwrap().get::<_, i64>(0) < count {
        tokio::task::yield_now().await;
    }
}

/// Counts contradictions between conditions, jobs and counters; all must be zero.
async fn contradictions(observer: &Client, options: &PostgresOptions) -> Vec<i64> {
    let schema = options.schema.as_deref().unwrap();
    let sql = format!(
        "SET search_path = {schema};
         CREATE TEMP VIEW wrong AS
         SELECT (SELECT count(*) FROM job_state s
                  WHERE s.has_condition <> EXISTS (SELECT FROM job_condition w WHERE w.job_no = s.job_no)) AS one,
                (SELECT count(*) FROM job_state s WHERE s.has_condition AND s.stopped_at = 9223372036854775807) AS two,
                (SELECT count(*) FROM tenant t
                  WHERE t.warnings <> (SELECT count(*) FROM job_condition w
                                        WHERE w.tenant_no = t.tenant_no AND w.level = 1)
                     OR t.errors <> (SELECT count(*) FROM job_condition w
                                      WHERE w.tenant_no = t.tenant_no AND w.level = 2)) AS three"
    );
    observer.batch_execute(&sql).await.unwrap();
    let row = observer.query_one("SELECT * FROM wrong", &[]).await.unwrap();
    (0..3).map(|column| row.get(column)).collect()
}

async fn failure_beside_a_good_judgement(judge_first: bool) {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.store.mark_at_risk(&[job.no]).await.unwrap();
    let judged = rig.store.to_judge(&all_shards(), 10, now(61)).await.unwrap();
    let touched = judged.jobs[0].touched;
    let (holder, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    let schema = options.schema.as_deref().unwrap();
    let hold = format!("BEGIN; SELECT FROM {schema}.job_state FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let judge = {
        let store = Arc::clone(&rig.store);
        let (job, reason, error_at) = (job.no, Reason::OnTime, at(2000));
        let well = Judgement { job, touched, reason, error_at, again_at: None };
        async move { store.judge(vec![well], now(62)).await.unwrap() }
    };
    let finish = {
        let store = Arc::clone(&rig.store);
        let (node, end) = (rig.node, rig.end(held, Outcome::Failed, OVER));
        async move { store.finish(node, vec![end], ALPHA).await.unwrap() }
    };
    let (judge, finish) = if judge_first {
        let judge = tokio::spawn(judge);
        wait_for_waiting(&observer, &options, 1).await;
        (judge, tokio::spawn(finish))
    } else {
        let finish = tokio::spawn(finish);
        wait_for_waiting(&observer, &options, 1).await;
        (tokio::spawn(judge), finish)
    };
    wait_for_waiting(&observer, &options, 2).await;
    holder.batch_execute("COMMIT").await.unwrap();
    judge.await.unwrap();
    assert_eq!(finish.await.unwrap(), [FinishResult::Done]);
    let due = rig.store.to_judge(&all_shards(), 10, now(63)).await.unwrap();
    assert_eq!(due.jobs.len(), 1, "a failure is judged");
    assert_ne!(due.jobs[0].touched, touched);
    assert_eq!(due.jobs[0].history.consecutive_failures, 1);
    assert_eq!(contradictions(&observer, &options).await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_judged_if_a_judgement_removes_the_condition_just_before() {
    failure_beside_a_good_judgement(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_judged_if_a_judgement_would_remove_the_condition_just_after() {
    failure_beside_a_good_judgement(false).await;
}

/// Fires and finishes the due runs of these jobs, claimed as they are fired or through the queue.
/// Every third run fails, and half of the failed runs are retried.
async fn fire_and_finish(rig: &Rig, worker: usize, jobs: Vec<JobNo>) {
    let node = rig.join(&format!("worker-{worker}"), 0).await;
    for round in 0..30 {
        let loaded = rig.store.load_jobs(&jobs).await.unwrap();
        let due = loaded.iter().filter(|job| job.next_at.is_some());
        let begin = |job: JobNo| match (job.0 + round) % 2 {
            0 => Begin::Claimed,
            _ => Begin::Queued,
        };
        let batch: Vec<Fire> = due.map(|job| fire_of(job, at(100_000), begin(job.no))).collect();
        rig.fire_for(node, batch, 100_000).await;
        let delayed = rig.delayed(100_000).await;
        let batch = delayed.iter().map(|wake| delayed_fire_of(wake, begin(wake.job.no))).collect();
        rig.store.fire_delayed(node, batch, now(100_000)).await.unwrap();
        rig.claim_for(node, 10, 100_000).await;
        let owned = rig.owned(node).await;
        let ends = owned.iter().map(|owned| end_of(rig, owned, round)).collect();
        rig.store.finish(node, ends, ALPHA).await.unwrap();
    }
}

fn end_of(rig: &Rig, owned: &OwnedAttempt, round: i64) -> Finish {
    let held = Held { key: owned.key, fence: owned.fence };
    match (owned.key.job_no.0 + round) % 6 {
        0 => rig.end(held, Outcome::Failed, OVER),
        3 => rig.retry(held, at(50_000)),
        _ => rig.success(held),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_stay_correct_under_concurrency_without_deadlocks() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let jobs: Vec<Known> =
        rig.add_all((0..40).map(|_| unnamed_job().every(60).build()).collect()).await;
    let observer = common::observer(&options.url).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before: i64 = observer.query_one(sql, &[]).await.unwrap().get(0);
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    let workers = (0..3).map(|worker| {
        let mut numbers = numbers.clone();
        // Each worker processes the jobs in a different order.
        numbers.rotate_left(worker * 13);
        fire_and_finish(&rig, worker, numbers)
    });
    let judges = (0..2).map(async |judge| {
        for round in 0..40 {
            let reason = |job: JobNo| Reason::ALL[((job.0 + round + judge) % 9) as usize];
            judge_all(&*rig.store, reason).await;
        }
    });
    let meddler = async {
        let reversed: Vec<JobNo> = numbers.iter().rev().copied().collect();
        for round in 0..40 {
            rig.store.mark_at_risk(&reversed[round % 20..]).await.unwrap();
            let seen = rig.store.load_jobs(&reversed[..round % 20]).await.unwrap();
            let decide = |job: &DueJob| {
                let (no, generation) = (job.no, job.generation);
                job.next_at.map(|due| Supersede { job: no, generation, due })
            };
            let batch: Vec<Supersede> = seen.iter().rev().filter_map(decide).collect();
            rig.store.supersede(&batch, now(500)).await.unwrap();
        }
    };
    let deleter = async {
        for job in &jobs[..20] {
            rig.store.delete(&rig.scope, job.id, now(100)).await.unwrap();
        }
    };
    tokio::join!(join_all(workers), join_all(judges), meddler, deleter);
    assert_eq!(contradictions(&observer, &options).await, [0, 0, 0]);
    let after: i64 = observer.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(after, before);
    judge_all(&*rig.store, |_| Reason::OnTime).await;
    let counts = rig.store.condition_counts(&rig.scope).await.unwrap();
    assert_eq!(counts.jobs, 20);
    let census = rig.census().await;
    assert_eq!(census.live, census.running + census.ready + census.delayed);
}
