//! Tests concurrent store methods, cancelled callers and a restarted server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::lease::Fence;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, AttemptKey, Definition, JobId, JobNo, NodeNo, Span, Timestamp};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store::{
    Attachments, AttemptStore, Finish, Fire, FireResult, JobStore, NewJob, NewNode, NodeStore, Now,
    Registered, Results, Role, Roles, ScheduleStore, Scope, Signal, Start, Store, Then, Triggered,
};
use evenkeel_store_postgres::{OpenError, PostgresOptions, PostgresStore};
use evenkeel_store_testkit::commands::Commands;
use evenkeel_store_testkit::fixtures::plain_trigger;
use tokio_postgres::Client;

const DUE: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn later(secs: u64) -> Timestamp {
    DUE.saturating_add(Span::from_secs(secs))
}

async fn scope(store: &PostgresStore) -> Scope {
    Scope { tenant: store.tenant("test").await.unwrap(), role: Role::Admin }
}

async fn add_jobs(store: &PostgresStore, count: u64) -> Vec<(JobId, JobNo)> {
    let every = Interval::new(Span::from_secs(60), None).unwrap();
    let jobs: Vec<NewJob> = (0..count)
        .map(|n| {
            let mut random = [0; 10];
            random[..8].copy_from_slice(&n.to_be_bytes());
            NewJob {
                id: JobId::new(DUE, random),
                about: About::default(),
                definition: Definition::noop(Schedule::Interval(every)),
                next_at: Some(DUE),
            }
        })
        .collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let scope = scope(store).await;
    let made = store.register(&scope, jobs, Now::At(DUE)).await.unwrap();
    let number = |made| match made {
        Registered::Created { no, .. } => no,
        Registered::NameTaken(id) | Registered::Duplicate(id) => panic!("{id} is in the way"),
    };
    ids.into_iter().zip(made.into_iter().map(number)).collect()
}

async fn join(store: &PostgresStore, identity: u128) -> NodeNo {
    let identity = uuid::Uuid::from_u128(identity);
    let node = NewNode { name: "node".into(), identity, roles: Roles::ALL, pools: Vec::new() };
    store.join(&node, Now::At(DUE)).await.unwrap().node
}

async fn fires(store: &PostgresStore, jobs: &[JobNo]) -> Vec<Fire> {
    let loaded = store.load_jobs(jobs).await.unwrap();
    let due = loaded.into_iter().filter_map(|job| Some((job.next_at?, job)));
    due.map(|(due, job)| Fire {
        job: job.no,
        tenant: job.tenant,
        generation: job.generation,
        due,
        head: job.head,
        skip: None,
        start: Some((due, Start::Claimed)),
        idle_only: true,
        next_at: Some(due.saturating_add(Span::from_secs(60))),
    })
    .collect()
}

fn finish(fire: &Fire) -> Finish {
    Finish {
        key: AttemptKey::regular(fire.job, fire.due),
        fence: Fence(1),
        tenant: fire.tenant,
        outcome: Outcome::Completed,
        started_at: fire.due,
        finished_at: fire.due,
        results: Results::default(),
        then: Then::EndRun { stop_job: false, next_at: None },
        priority: None,
        attachments: Attachments::default(),
        judge: false,
        unstored_since: None,
        hook: evenkeel_store::Hook::None,
    }
}

/// Returns the number of sessions of the store that are idle in a transaction.
async fn open_transactions(observer: &Client, options: &PostgresOptions) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity
                WHERE application_name = $1 AND state LIKE 'idle in transaction%'";
    observer.query_one(sql, &[&options.application_name]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_trigger_that_waited_for_a_deletion_finds_no_job() {
    let (store, options) = common::open().await;
    let (id, no) = add_jobs(&store, 1).await[0];
    let scope = scope(&store).await;
    let store = Arc::new(store);
    let (deleter, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    let schema = options.schema.as_deref().unwrap();
    let delete = format!(
        "BEGIN; UPDATE {schema}.job SET state = 3 WHERE job_no = {no};
         UPDATE {schema}.job_state SET stopped_at = {max}, active = false WHERE job_no = {no}",
        no = no.0,
        max = i64::MAX
    );
    deleter.batch_execute(&delete).await.unwrap();
    let asked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.trigger(&scope, id, plain_trigger(0), Now::At(DUE)).await }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let name = &options.application_name;
    while observer.query_one(waits, &[name]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    deleter.batch_execute("COMMIT").await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap(), Triggered::NotFound);
    let census = store.census().await.unwrap();
    assert_eq!((census.delayed, census.live), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_callers_leave_usable_connections_and_no_transaction() {
    let (store, options) = common::open().await;
    let (store, jobs) = (Arc::new(store), 100);
    let numbers = add_jobs(&store, jobs).await;
    let node = join(&store, 1).await;
    let all: Vec<JobNo> = numbers.iter().map(|(_, no)| *no).collect();
    for round in 0..200_u64 {
        let (store, all, id) = (Arc::clone(&store), all.clone(), numbers[0].0);
        let scope = scope(&store).await;
        let task = tokio::spawn(async move {
            let batch = fires(&store, &all).await;
            let ends = batch.iter().map(finish).collect();
            drop(store.fire(node, batch, Now::At(later(100_000))).await);
            drop(store.finish(node, ends, DEFAULT_ALPHA).await);
            drop(store.trigger(&scope, id, plain_trigger(0), Now::At(later(round))).await);
        });
        tokio::time::sleep(Duration::from_micros(round * 37 % 4_000)).await;
        task.abort();
        drop(task.await);
    }
    // Store methods that were running continue to their end; the test waits for them by using every
    // connection.
    let busy = (0..options.hot_connections + options.api_connections).map(|_| store.now());
    futures::future::try_join_all(busy).await.unwrap();
    assert!(store.census().await.is_ok());
    let observer = common::observer(&options.url).await;
    assert_eq!(open_transactions(&observer, &options).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn firing_continues_while_all_api_connections_are_busy() {
    let (store, options) = common::open().await;
    let store = Arc::new(store);
    let jobs = add_jobs(&store, 10).await;
    let node = join(&store, 1).await;
    let schema = options.schema.clone().unwrap();
    let observer = common::observer(&options.url).await;
    // Every API request waits for this table lock.
    let lock = format!("BEGIN; LOCK TABLE {schema}.tenant IN ACCESS EXCLUSIVE MODE");
    observer.batch_execute(&lock).await.unwrap();
    let waiting: Vec<_> = (0..options.api_connections * 2)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.tenant(&format!("tenant {n}")).await })
        })
        .collect();
    let numbers: Vec<JobNo> = jobs.iter().map(|(_, no)| *no).collect();
    let batch = fires(&store, &numbers).await;
    let fired = store.fire(node, batch, Now::At(DUE)).await.unwrap();
    assert_eq!(fired.results, [FireResult::Fired(Fence(1)); 10]);
    observer.batch_execute("COMMIT").await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_fire_the_same_jobs_once() {
    let (store, options) = common::open().await;
    let other = PostgresStore::connect(options).await.unwrap();
    let jobs = add_jobs(&store, 1000).await;
    let (one, two) = (join(&store, 1).await, join(&other, 2).await);
    let numbers: Vec<JobNo> = jobs.iter().map(|(_, no)| *no).collect();
    for minute in 0..5 {
        let batch = fires(&store, &numbers).await;
        let ends: Vec<Finish> = batch.iter().map(finish).collect();
        let now = Now::At(later(minute * 60));
        let (first, second) =
            tokio::join!(store.fire(one, batch.clone(), now), other.fire(two, batch, now));
        let (first, second) = (first.unwrap().results, second.unwrap().results);
        let fired = |result: &FireResult| matches!(result, FireResult::Fired(_));
        for (first, second) in first.iter().zip(&second) {
            assert!(fired(first) != fired(second), "{first:?} and {second:?}");
        }
        store.finish(one, ends.clone(), DEFAULT_ALPHA).await.unwrap();
        other.finish(two, ends, DEFAULT_ALPHA).await.unwrap();
    }
    let census = store.census().await.unwrap();
    assert_eq!((census.runs, census.running, census.live), (5000, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn firing_finishing_and_deleting_the_same_jobs_ends_without_deadlock() {
    let (store, options) = common::open().await;
    let store = Arc::new(store);
    let jobs = add_jobs(&store, 60).await;
    let observer = common::observer(&options.url).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before: i64 = observer.query_one(sql, &[]).await.unwrap().get(0);
    let numbers: Vec<JobNo> = jobs.iter().map(|(_, no)| *no).collect();
    let mut workers = Vec::new();
    for worker in 0..4_u128 {
        let (store, mut numbers) = (Arc::clone(&store), numbers.clone());
        // Each worker processes the jobs in a different order.
        numbers.rotate_left(worker as usize * 15);
        workers.push(tokio::spawn(async move {
            let node = join(&store, worker).await;
            for _ in 0..40 {
                let batch = fires(&store, &numbers).await;
                let ends = batch.iter().map(finish).collect();
                store.fire(node, batch, Now::At(later(1_000_000))).await.unwrap();
                store.finish(node, ends, DEFAULT_ALPHA).await.unwrap();
            }
        }));
    }
    let scope = scope(&store).await;
    for (id, _) in &jobs[..30] {
        store.delete(&scope, *id, Now::At(DUE)).await.unwrap();
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let census = store.census().await.unwrap();
    assert_eq!((census.jobs, census.running, census.live), (30, 0, 0));
    let after: i64 = observer.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(after, before);
}

/// Waits until a session of the store is waiting for a lock.
async fn wait_for_a_waiter(observer: &Client, options: &PostgresOptions) {
    let sql = "SELECT count(*) FROM pg_stat_activity
                WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let look = async {
        let waits = async || -> i64 {
            observer.query_one(sql, &[&options.application_name]).await.unwrap().get(0)
        };
        while waits().await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), look).await.expect("nobody waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_waits_for_a_finish_before_it_locks_the_job() {
    let (store, options) = common::open().await;
    let store = Arc::new(store);
    let jobs = add_jobs(&store, 1).await;
    let (id, no) = jobs[0];
    let node = join(&store, 1).await;
    let batch = fires(&store, &[no]).await;
    let ends: Vec<Finish> = batch.iter().map(finish).collect();
    store.fire(node, batch, Now::At(later(60))).await.unwrap();
    let scope = scope(&store).await;
    store.delete(&scope, id, Now::At(later(60))).await.unwrap();
    // This transaction acts like one that finishes the attempt and has locked the attempt's row.
    let (mut finishing, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    let schema = options.schema.clone().unwrap();
    finishing.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    let finishing = finishing.transaction().await.unwrap();
    finishing.execute("UPDATE attempt SET error = NULL WHERE job_no = $1", &[&no.0]).await.unwrap();
    let purging = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.purge(&scope, id, 10).await })
    };
    wait_for_a_waiter(&observer, &options).await;
    let sql = "SELECT FROM job_state WHERE job_no = $1 FOR NO KEY UPDATE NOWAIT";
    finishing.query(sql, &[&no.0]).await.expect("the job's state is free");
    finishing.commit().await.unwrap();
    assert_eq!(purging.await.unwrap().unwrap(), 0);
    store.finish(node, ends, DEFAULT_ALPHA).await.unwrap();
    let scope = self::scope(&store).await;
    assert_eq!(store.purge(&scope, id, 10).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_reconnects_to_a_restarted_server() {
    // The test starts a separate server, because other tests use the shared server.
    let options = Options { durable: true, ..Options::unit_test() };
    let start = || PrivatePostgres::start(options);
    let mut server = tokio::task::spawn_blocking(start).await.unwrap().unwrap();
    let options = common::fresh_options(server.url().to_owned()).await;
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    add_jobs(&store, 10).await;
    let mut received = store.signals().subscribe();
    let mut server = tokio::task::spawn_blocking(move || {
        server.stop_immediately().unwrap();
        server
    })
    .await
    .unwrap();
    let down = store.now().await.unwrap_err();
    assert!(down.is_outage(), "{down:?}");
    let server = tokio::task::spawn_blocking(move || {
        server.restart().unwrap();
        server
    })
    .await
    .unwrap();
    // After the restart, the first request on each connection may fail.
    for _ in 0..options.hot_connections.max(options.api_connections) {
        drop(store.now().await);
        drop(store.census().await);
    }
    assert!(store.now().await.is_ok());
    assert_eq!(store.census().await.unwrap().jobs, 10);
    let woken = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
    assert!(woken.is_ok(), "the listener did not come back");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_reaches_other_nodes() {
    let (store, options) = common::open().await;
    let other = PostgresStore::connect(options).await.unwrap();
    let mut there = other.signals().subscribe();
    // Every signal is raised once when a listener connects, so only the second signal proves that a
    // notification arrived.
    let received_twice = async {
        let mut times = 0;
        while times < 2 {
            times += u32::from(there.recv().await.unwrap() == Signal::Ready);
        }
    };
    let announce_repeatedly = async {
        loop {
            store.announce(Signal::Ready).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = received_twice => {}
        () = announce_repeatedly => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nothing was received"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_nodes_may_start_at_once_on_an_empty_database() {
    let options = common::fresh_options(common::url()).await;
    let nodes = (0..6).map(|_| PostgresStore::connect(options.clone()));
    let stores = futures::future::try_join_all(nodes).await.unwrap();
    assert_eq!(stores[5].census().await.unwrap().jobs, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused() {
    let (_store, options) = common::open().await;
    let schema = options.schema.clone().unwrap();
    let sql = format!("INSERT INTO {schema}.schema_version (version) VALUES (99)");
    common::observer(&options.url).await.batch_execute(&sql).await.unwrap();
    let refused = PostgresStore::connect(options).await.unwrap_err();
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, .. }), "{refused:?}");
}
