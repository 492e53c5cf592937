//! Measures how fast the PostgreSQL store counts the load of jobs and moves jobs to other start
//! times, with durable commits.
//!
//! ```text
//! cargo run --release -p evenkeel-store-postgres --example postgres_balance -- \
//!     [--jobs 100000] [--batch 1000] [--connections 2] [--moves 100000] [--url URL]
//! ```
//!
//! Without `--url`, the program starts its own PostgreSQL server with durable settings and removes
//! it at the end. Half of the jobs run daily, the rest every hour or every 15 minutes. Prints how
//! many jobs are registered and moved per second, with one transaction per batch, and the time to
//! read all load profiles and start times.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails may stop")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::balance::{LoadProfile, LoadProfileKey, Move, Placement};
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{About, Definition, JobId, Span, Timestamp};
use evenkeel_private_postgres::{Options, PrivatePostgres};
use evenkeel_store::{
    BalanceStore, JobStore, MoveBatch, Moved, NewJob, Now, Rebalance, RebalanceState, Role, Scope,
    Store,
};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use tokio_postgres::NoTls;
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
const PAGE: u32 = 50_000;

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

async fn measure(url: String) {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("DROP SCHEMA IF EXISTS balance CASCADE").await.unwrap();
    let options = PostgresOptions {
        schema: Some("balance".into()),
        statement_timeout: Duration::from_secs(60),
        ..PostgresOptions::new(url)
    };
    let store = Arc::new(PostgresStore::connect(options).await.unwrap());
    println!("{:?}", store.durability().await.unwrap());
    let scope = Scope { tenant: store.tenant("bench").await.unwrap(), role: Role::Admin };
    register(&store, scope).await;
    for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
        client.batch_execute(sql).await.unwrap();
    }
    let from = Instant::now();
    let profiles = store.load_profiles(None, 1_000_000).await.unwrap();
    println!("{} profiles read in {:.1} ms", profiles.len(), millis(from));
    let placements = read_placements(&store, scope).await;
    move_all(&store, scope, &placements).await;
    read_placements(&store, scope).await;
    let from = Instant::now();
    let weighed = store.recount_load(None, 5000).await.unwrap();
    println!("5000 jobs weighed in {:.1} ms, {} changed", millis(from), weighed.changed);
}

fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1000.0
}

fn every(nth: usize) -> Span {
    Span::from_secs([86_400, 3600, 86_400, 900][nth % 4])
}

fn definition(every: Span) -> Definition {
    Definition::noop(Schedule::Interval(Interval::new(every, None).unwrap()))
}

async fn register(store: &Arc<PostgresStore>, scope: Scope) {
    let (jobs, connections) = (option("--jobs", 100_000), option("--connections", 2));
    let from = Instant::now();
    let shares = (0..connections).map(|share| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let mine: Vec<usize> = (share..jobs).step_by(connections).collect();
            for chunk in mine.chunks(option("--batch", 1000)) {
                let new = chunk.iter().map(|nth| new_job(*nth)).collect();
                store.register(&scope, new, Now::At(NOW)).await.unwrap();
            }
        })
    });
    for share in shares.collect::<Vec<_>>() {
        share.await.unwrap();
    }
    println!("{jobs} jobs registered: {:.0}/s", jobs as f64 / from.elapsed().as_secs_f64());
}

fn new_job(nth: usize) -> NewJob {
    let every = every(nth);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&(nth as u64).to_be_bytes());
    let phase = (nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % every.as_micros();
    NewJob {
        id: JobId::new(NOW, random),
        about: About { name: Some(format!("job {nth}")), ..About::default() },
        definition: definition(every),
        next_at: Some(NOW.saturating_add(Span::from_micros(phase + 3_600_000_000))),
    }
}

async fn read_placements(store: &PostgresStore, scope: Scope) -> Vec<Placement> {
    let from = Instant::now();
    let mut all: Vec<Placement> = Vec::new();
    loop {
        let after = all.last().map(|job| job.job);
        let page = store.placements(&scope, after, PAGE).await.unwrap();
        let is_last = page.len() < PAGE as usize;
        all.extend(page);
        if is_last {
            break;
        }
    }
    println!("{} placements read in {:.0} ms", all.len(), millis(from));
    all
}

async fn move_all(store: &PostgresStore, scope: Scope, placements: &[Placement]) {
    let moves = option("--moves", 100_000).min(placements.len());
    let rebalance = plan(placements[..moves].chunks(1000).len());
    let id = rebalance.id;
    let parts = vec![vec![7; 32_000]; rebalance.parts as usize];
    let from = Instant::now();
    store.plan_rebalance(&scope, rebalance, parts).await.unwrap();
    println!("a plan of {moves} moves kept in {:.0} ms", millis(from));
    store.begin_rebalance(&scope, id, NOW, Now::At(NOW)).await.unwrap();
    // Each move includes the job's new load profile, as in a rebalance plan.
    let mut texts = HashMap::new();
    let batches: Vec<Vec<Move>> = placements[..moves]
        .chunks(1000)
        .map(|chunk| chunk.iter().map(|job| move_of(job, &mut texts)).collect())
        .collect();
    let mut slowest = Duration::ZERO;
    let from = Instant::now();
    for (part, moves) in (0..).zip(batches) {
        let begun = Instant::now();
        let mut profiles: Vec<LoadProfileKey> = moves.iter().map(|one| one.profile).collect();
        profiles.sort_unstable();
        profiles.dedup();
        let profiles = profiles.into_iter().map(|key| (key, texts[&key].clone())).collect();
        let batch = MoveBatch { rebalance: id, part, moves, profiles, even_live: false };
        let moved = store.move_jobs(&scope, batch, Now::At(NOW)).await.unwrap();
        assert!(matches!(moved, Moved::Done(made) if made.iter().all(|made| *made)));
        slowest = slowest.max(begun.elapsed());
    }
    let rate = moves as f64 / from.elapsed().as_secs_f64();
    println!("{moves} jobs moved: {rate:.0}/s, the slowest batch took {slowest:.1?}");
}

fn move_of(job: &Placement, texts: &mut HashMap<LoadProfileKey, String>) -> Move {
    let every = every((job.job.0 - 1).unsigned_abs() as usize);
    let shift = Span::from_secs(900 * (1 + job.job.0.unsigned_abs() % 40));
    let new_at = job.next_at.saturating_add(shift);
    let profile = LoadProfile::of(&definition(every), new_at).unwrap().text();
    let key = LoadProfileKey::of(&profile);
    texts.entry(key).or_insert(profile);
    Move { job: job.job, generation: job.generation, old_at: job.next_at, new_at, profile: key }
}

fn plan(parts: usize) -> Rebalance {
    Rebalance {
        id: Uuid::from_u128(1),
        state: RebalanceState::Planned,
        undoes: None,
        undone_by: None,
        created_by: "bench".into(),
        created_at: NOW,
        touched_at: None,
        ended_at: None,
        parts: parts as u32,
        parts_done: 0,
        planned: 0,
        moved: 0,
        changed: 0,
        skipped: 0,
        summary: "{}".into(),
    }
}
