//! Tests many workers that claim from one queue, round after round.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with tests of stores that know deadlocks")]
mod common;
#[path = "common/rings.rs"]
mod rings;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::AttemptKey;
use evenkeel_core::order::Lane;
use evenkeel_store::{Claim, FinishResult, FireResult, Store};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{Begin, at, fire_of, now, unnamed_job};
use evenkeel_store_testkit::rig::{ALPHA, Held, Known, Rig, claim_of};
use futures::future::join_all;
use tokio_postgres::Client;

const WORKERS: usize = 8;
const ROUNDS: i64 = 10;
/// A few thousand runs are enough to show whether a table grows from round to round.
const RUNS: usize = 4000;
const HOUR: i64 = 3600;
const POOLS: [&str; 2] = ["default", "big"];

/// Number of runs that are queued in each round. `EVENKEEL_RACE_RUNS=200000` makes a long race.
fn runs_a_round() -> usize {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let asked = std::env::var("EVENKEEL_RACE_RUNS");
    asked.map_or(RUNS, |asked| asked.parse().unwrap())
}

async fn add_jobs(rig: &Rig, count: usize) -> Vec<Known> {
    let mut known = Vec::with_capacity(count);
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(2000) {
        let job = |n: &usize| {
            let job = unnamed_job().every(6 * 3600).first_at(0).priority((n * 37 % 101) as u8);
            job.lane(Lane::ALL[n % 7 % 3]).pool(POOLS[n % 5 % 2]).build()
        };
        known.extend(rig.add_all(batch.iter().map(job).collect()).await);
    }
    known
}

/// Queues the next run of each job.
async fn fill(rig: &Rig, jobs: &[Known], secs: i64) {
    for batch in jobs.chunks(1000) {
        let numbers: Vec<_> = batch.iter().map(|job| job.no).collect();
        let due = rig.store.load_jobs(&numbers).await.unwrap();
        let fires = due.iter().map(|job| fire_of(job, at(secs), Begin::Queued)).collect();
        let fired = rig.fire(fires, secs).await;
        assert_eq!(fired.len(), batch.len());
        assert!(fired.iter().all(|result| matches!(result, FireResult::Fired(_))));
    }
}

/// Returns the attempts that one worker has claimed.
async fn work(
    rig: &Rig,
    store: &dyn Store,
    name: &str,
    left: &AtomicUsize,
    secs: i64,
) -> Vec<AttemptKey> {
    let node = rig.join(name, secs).await;
    let pools = POOLS.map(str::to_owned).to_vec();
    let claim = Claim { pools, guaranteed: [50, 30, 10], ..claim_of(node, 100) };
    let mut got = Vec::new();
    while left.load(Ordering::Relaxed) > 0 {
        let claimed = store.claim(&claim, now(secs)).await.unwrap().attempts;
        let end = |held: Held| rig.success(held);
        let ends = claimed.iter().map(|it| end(Held { key: it.key, fence: it.fence })).collect();
        let finished = store.finish(node, ends, ALPHA).await.unwrap();
        assert!(finished.iter().all(|result| *result == FinishResult::Done));
        left.fetch_sub(claimed.len(), Ordering::Relaxed);
        got.extend(claimed.iter().map(|attempt| attempt.key));
    }
    got
}

/// Returns the sizes in bytes of the tables `ready` and `job_state`, with their indexes.
async fn sizes(observer: &Client) -> [i64; 2] {
    let sql = "SELECT pg_total_relation_size('ready'), pg_total_relation_size('job_state')";
    let row = observer.query_one(sql, &[]).await.unwrap();
    [row.get(0), row.get(1)]
}

async fn handle(options: &PostgresOptions) -> PostgresStore {
    let options = PostgresOptions { hot_connections: 2, api_connections: 1, ..options.clone() };
    PostgresStore::connect(options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_run_is_claimed_once_and_the_queue_does_not_grow() {
    // A transaction that another test keeps open would keep VACUUM from removing old rows.
    let (store, options) = rings::open(common::own_url()).await;
    let opened = Opened { store: Arc::new(store), guard: Box::new(()), reopen: None };
    let rig = Rig::new(opened).await;
    let observer = common::observer(&options.url).await;
    let schema = options.schema.as_deref().unwrap();
    observer.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    let jobs = add_jobs(&rig, runs_a_round()).await;
    let handles = join_all((0..WORKERS).map(|_| handle(&options))).await;

    let mut early = [0; 2];
    for round in 0..ROUNDS {
        let secs = round * 6 * HOUR;
        fill(&rig, &jobs, secs).await;
        // In every second round the attempts have waited so long that their waiting time decides
        // their rank.
        let secs = secs + round % 2 * 3 * HOUR;
        let left = AtomicUsize::new(jobs.len());
        let names: Vec<String> = (0..WORKERS).map(|n| format!("worker-{n}")).collect();
        let workers = handles.iter().zip(&names);
        let got = workers.map(|(store, name)| work(&rig, store, name, &left, secs));
        let got: Vec<AttemptKey> = join_all(got).await.concat();
        assert_eq!(got.len(), jobs.len());
        let different: HashSet<AttemptKey> = got.into_iter().collect();
        assert_eq!(different.len(), jobs.len(), "each once, in round {round}");
        assert_eq!(rig.store.census().await.unwrap().ready, 0);
        let now = sizes(&observer).await;
        // Vacuums the tables as autovacuum does.
        for table in ["ready", "job_state"] {
            observer.batch_execute(&format!("VACUUM {table}")).await.unwrap();
        }
        if round == 1 {
            early = now;
        }
        for (now, early) in now.into_iter().zip(early).filter(|_| round > 1) {
            assert!(now <= early * 3 / 2, "from {early} to {now} bytes in round {round}");
        }
    }
}
