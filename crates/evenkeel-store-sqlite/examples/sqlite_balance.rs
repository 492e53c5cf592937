//! Measures how fast the SQLite store alone registers jobs, reads their load profiles and start
//! times, and moves jobs to other start times.
//!
//! ```text
//! cargo run --release -p evenkeel-store-sqlite --example sqlite_balance -- \
//!     [jobs=1000000] [moves=200000]
//! ```
//!
//! The jobs run hourly or daily, in all time slots of a day. The file is in `TMPDIR`.

#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::collections::HashMap;
use std::time::Instant;

use evenkeel_core::balance::{Load, Move, Placement};
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{Definition, JobId, Span, Timestamp};
use evenkeel_store::{
    BalanceStore, JobStore, MOVES_MAX, MoveBatch, Moved, NewJob, Now, Rebalance, RebalanceState,
    Role, Scope, Store,
};
use evenkeel_store_sqlite::{SqliteOptions, SqliteStore};
use uuid::Uuid;

const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
const HOUR: u64 = 3600;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |or| numbers.next().unwrap_or(Ok(or));
    let (jobs, moves) = (number(1_000_000)?, number(200_000)?);
    let directory = tempfile::tempdir()?;
    let options = SqliteOptions::new(directory.path().join("balance.sqlite"));
    let store = SqliteStore::open(options).await?;
    let scope = Scope { tenant: store.tenant("bench").await?, role: Role::Admin };

    let begun = Instant::now();
    for first in (0..jobs).step_by(5_000) {
        let part = (first..jobs.min(first + 5_000)).map(new_job).collect::<Result<_, _>>()?;
        store.register(&scope, part, Now::At(START)).await?;
    }
    println!("{:.0} jobs/s registered", jobs as f64 / begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let profiles = store.load_profiles(None, 100_000).await?;
    println!("{} profiles read in {:?}", profiles.len(), begun.elapsed());

    let begun = Instant::now();
    let mut placements: Vec<Placement> = Vec::new();
    loop {
        let after = placements.last().map(|last| last.job);
        let page = store.placements(&scope, after, 10_000).await?;
        if page.is_empty() {
            break;
        }
        placements.extend(page);
    }
    println!("{} placements read in {:?}", placements.len(), begun.elapsed());

    let moved: Vec<&Placement> = placements.iter().take(moves as usize).collect();
    println!("{:.0} moves/s", move_all(&store, &scope, &moved).await?);
    Ok(())
}

/// Returns an hourly or daily job that first runs within one interval, counted from `START` + 1 h.
fn new_job(n: u64) -> anyhow::Result<NewJob> {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let every = if n.is_multiple_of(2) { HOUR } else { 24 * HOUR };
    let interval = Interval::new(Span::from_secs(every), None)?;
    let mut random = [0; 10];
    random[..8].copy_from_slice(&n.to_be_bytes());
    Ok(NewJob {
        id: JobId::new(START, random),
        about: Default::default(),
        definition: Definition::noop(Schedule::Interval(interval)),
        next_at: Some(START.saturating_add(Span::from_secs(HOUR + (mixed >> 20) % every))),
    })
}

/// Delays the start times of jobs by 15 minutes, in batches. Returns the number of jobs moved per
/// second.
async fn move_all(store: &SqliteStore, scope: &Scope, moved: &[&Placement]) -> anyhow::Result<f64> {
    let parts: Vec<&[&Placement]> = moved.chunks(MOVES_MAX).collect();
    let id = Uuid::from_u128(1);
    let plan = Rebalance {
        id,
        state: RebalanceState::Planned,
        undoes: None,
        undone_by: None,
        created_by: "bench".into(),
        created_at: START,
        touched_at: None,
        ended_at: None,
        parts: parts.len() as u32,
        parts_done: 0,
        planned: moved.len() as u64,
        moved: 0,
        changed: 0,
        skipped: 0,
        summary: String::new(),
    };
    let bytes = parts.iter().map(|part| vec![0; part.len() * 36]).collect();
    store.plan_rebalance(scope, plan, bytes).await?;
    store.begin_rebalance(scope, id, START, Now::At(START)).await?;
    let batches: Vec<MoveBatch> = (0..)
        .zip(&parts)
        .map(|(part, placements)| batch_of(id, part, placements))
        .collect::<anyhow::Result<_>>()?;
    let begun = Instant::now();
    for batch in batches {
        let answer = store.move_jobs(scope, batch, Now::At(START)).await?;
        anyhow::ensure!(matches!(answer, Moved::Done(made) if made.iter().all(|made| *made)));
    }
    Ok(moved.len() as f64 / begun.elapsed().as_secs_f64())
}

fn batch_of(id: Uuid, part: u32, placements: &[&Placement]) -> anyhow::Result<MoveBatch> {
    let mut profiles = HashMap::new();
    let mut moves = Vec::with_capacity(placements.len());
    for placement in placements {
        let new_at = placement.next_at.saturating_add(Span::from_secs(900));
        let definition = new_job(placement.job.0.unsigned_abs() - 1)?.definition;
        let load = Load::of(&definition, None, new_at);
        let load = load.ok_or_else(|| anyhow::anyhow!("it has no profile"))?;
        moves.push(Move {
            job: placement.job,
            generation: placement.generation,
            old_at: placement.next_at,
            new_at,
            profile: load.key,
        });
        profiles.insert(load.key, load.profile);
    }
    let profiles = profiles.into_iter().collect();
    Ok(MoveBatch { rebalance: id, part, moves, profiles, even_live: false })
}
