//! Measures how many runs per second the PostgreSQL store alone fires and finishes.
//!
//! ```text
//! cargo run --release -p evenkeel-store-postgres --example postgres_throughput -- \
//!     [--jobs 100000] [--idle 0] [--batch 1000] [--connections 2] [--seconds 10] [--url URL]
//! ```
//!
//! Without `--url`, the program starts its own PostgreSQL server with durable settings and removes
//! it at the end. The jobs run every 1 to 60 s. Each connection fires a batch of its own jobs,
//! finishes the runs, and continues with the jobs that are due next. The program passes the due
//! time of each batch to the store as the current time, so that jobs are always due. `--idle` adds
//! jobs that are never due. Prints the number of runs per second after a warm-up of 2 s, the bytes
//! of write-ahead log per run, and the time to fire a batch.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails may stop")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenkeel_core::attempt::Outcome;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::lease::Fence;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{
    About, AttemptKey, Definition, JobId, JobNo, NodeNo, Sequence, Span, Timestamp,
};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store::{
    Attachments, AttemptStore, Finish, FinishResult, Fire, FireResult, JobStore, NewJob, NewNode,
    NodeStore, Now, Registered, Results, Role, Roles, RunLink, ScheduleStore, Scope, Start, Store,
    Then,
};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::NoTls;

const WARM_UP: Duration = Duration::from_secs(2);
const BEGIN: i64 = 1_800_000_000_000_000;

fn option(name: &str, default: usize) -> usize {
    text_option(name).map_or(default, |text| text.parse().unwrap())
}

fn text_option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.next().and_then(|_| args.next())
}

fn main() {
    let server = match text_option("--url") {
        Some(_) => None,
        None => Some(PrivatePostgres::start(Options::benchmark()).unwrap()),
    };
    let url = text_option("--url")
        .unwrap_or_else(|| server.as_ref().map(|server| server.url().to_owned()).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(Box::pin(measure(url)));
    drop(server);
}

/// A job as the scheduler keeps it in memory.
struct Held {
    no: JobNo,
    period: Span,
    head: Option<RunLink>,
}

async fn measure(url: String) {
    let (jobs, idle) = (option("--jobs", 100_000), option("--idle", 0));
    let (batch, connections) = (option("--batch", 1000), option("--connections", 2));
    let seconds = option("--seconds", 10);
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("DROP SCHEMA IF EXISTS throughput CASCADE").await.unwrap();
    let options = PostgresOptions {
        schema: Some("throughput".into()),
        hot_connections: connections.max(2),
        statement_timeout: Duration::from_secs(60),
        ..PostgresOptions::new(url)
    };
    let store = Arc::new(PostgresStore::connect(options).await.unwrap());
    println!("{:?}", store.durability().await.unwrap());
    let held = register(&store, jobs, idle).await;
    for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
        client.batch_execute(sql).await.unwrap();
    }

    let node = NewNode {
        name: "bench".into(),
        identity: uuid::Uuid::nil(),
        roles: Roles::ALL,
        pools: Vec::new(),
    };
    let now = Now::At(Timestamp::from_micros(BEGIN));
    let node = store.join(&node, now).await.unwrap().node;
    let (fired, fire_micros) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let mut shares: Vec<Vec<Held>> = (0..connections).map(|_| Vec::new()).collect();
    for (nth, job) in held.into_iter().enumerate() {
        shares[nth % connections].push(job);
    }
    let workers: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            let (fired, fire_micros) = (Arc::clone(&fired), Arc::clone(&fire_micros));
            tokio::spawn(work(store, node, share, batch, stop, fired, fire_micros))
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let (before, wal, from) = (fired.load(Ordering::Relaxed), wal(&client).await, Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let count = fired.load(Ordering::Relaxed) - before;
    let took = from.elapsed().as_secs_f64();
    let written = wal_since(&client, wal).await;
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let all = fired.load(Ordering::Relaxed);
    let rate = count as f64 / took;
    let bytes = written / count as f64;
    let fire_ms = fire_micros.load(Ordering::Relaxed) as f64 / (all as f64 / batch as f64) / 1000.0;
    println!(
        "{jobs} jobs, {idle} idle, batch {batch}, {connections} connections: {rate:.0} firings/s, \
         {bytes:.0} bytes of log per firing, a fire took {fire_ms:.1} ms"
    );
    let census = store.census().await.unwrap();
    assert_eq!((census.runs, census.running, census.live), (all, 0, 0));
}

async fn wal(client: &tokio_postgres::Client) -> String {
    client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0)
}

async fn wal_since(client: &tokio_postgres::Client, from: String) -> f64 {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::float8";
    client.query_one(sql, &[&from]).await.unwrap().get(0)
}

async fn register(store: &PostgresStore, jobs: usize, idle: usize) -> Vec<Held> {
    let tenant = store.tenant("bench").await.unwrap();
    let scope = Scope { tenant, role: Role::Admin };
    let mut held = Vec::with_capacity(jobs);
    let numbers: Vec<usize> = (0..jobs + idle).collect();
    for chunk in numbers.chunks(10_000) {
        let new = |nth: &usize| {
            let period = Span::from_secs(1 + (*nth as u64 * 7919) % 60);
            let mut random = [0; 10];
            random[..8].copy_from_slice(&(*nth as u64).to_be_bytes());
            NewJob {
                id: JobId::new(Timestamp::from_micros(BEGIN), random),
                about: About::default(),
                definition: Definition::noop(Schedule::Interval(
                    Interval::new(period, None).unwrap(),
                )),
                next_at: (*nth < jobs).then_some(first_time(*nth, period)),
            }
        };
        let now = Now::At(Timestamp::from_micros(BEGIN - 10_000_000_000));
        let made = store.register(&scope, chunk.iter().map(new).collect(), now).await.unwrap();
        for (nth, made) in chunk.iter().zip(made).filter(|(nth, _)| **nth < jobs) {
            let Registered::Created { no, .. } = made else { panic!("{made:?}") };
            held.push(Held {
                no,
                period: Span::from_secs(1 + (*nth as u64 * 7919) % 60),
                head: None,
            });
        }
    }
    held
}

/// Returns the first run time of the `nth` job, at a pseudo-random offset within its period.
fn first_time(nth: usize, period: Span) -> Timestamp {
    let phase = (nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % period.as_micros();
    Timestamp::from_micros(BEGIN).saturating_add(Span::from_micros(phase))
}

async fn work(
    store: Arc<PostgresStore>,
    node: NodeNo,
    mut held: Vec<Held>,
    batch: usize,
    stop: Arc<AtomicBool>,
    fired: Arc<AtomicU64>,
    fire_micros: Arc<AtomicU64>,
) {
    let tenant = store.tenant("bench").await.unwrap();
    let numbers: Vec<JobNo> = held.iter().map(|job| job.no).collect();
    let mut due = BinaryHeap::new();
    for (at, job) in store.load_jobs(&numbers).await.unwrap().iter().enumerate() {
        assert_eq!(job.no, held[at].no);
        due.push(Reverse((job.next_at.unwrap(), at)));
    }
    while !stop.load(Ordering::Relaxed) {
        let mut next = Vec::with_capacity(batch);
        let (mut again, mut seen) = (Vec::new(), HashSet::with_capacity(batch));
        while next.len() < batch.min(held.len()) {
            // Each job occurs at most once in a batch.
            let Reverse((at, job)) = due.pop().unwrap();
            if !seen.insert(job) {
                again.push(Reverse((at, job)));
                break;
            }
            next.push((at, job));
        }
        due.extend(again);
        let now = next.last().unwrap().0;
        let fires = next.iter().map(|(at, job)| Fire {
            job: held[*job].no,
            tenant,
            generation: 1,
            due: *at,
            head: held[*job].head,
            skip: None,
            start: Some((*at, Start::Claimed)),
            idle_only: true,
            next_at: Some(at.saturating_add(held[*job].period)),
        });
        let begun = Instant::now();
        let answer = store.fire(node, fires.collect(), Now::At(now)).await.unwrap();
        fire_micros.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        assert!(answer.results.iter().all(|one| *one == FireResult::Fired(Fence(1))));
        let finishes = next.iter().map(|(at, job)| Finish {
            key: AttemptKey::regular(held[*job].no, *at),
            fence: Fence(1),
            tenant,
            outcome: Outcome::Completed,
            started_at: now,
            finished_at: now.saturating_add(Span::from_millis(5)),
            results: Results::default(),
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            attachments: Attachments::default(),
            judge: false,
            unstored_since: None,
            hook: evenkeel_store::Hook::None,
        });
        let answer = store.finish(node, finishes.collect(), DEFAULT_ALPHA).await.unwrap();
        assert!(answer.iter().all(|one| *one == FinishResult::Done));
        for (at, job) in &next {
            held[*job].head = Some(RunLink { scheduled_at: *at, sequence: Sequence::REGULAR });
            due.push(Reverse((at.saturating_add(held[*job].period), *job)));
        }
        fired.fetch_add(next.len() as u64, Ordering::Relaxed);
    }
}
