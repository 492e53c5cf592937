//! Moves of a batch of jobs, in one transaction.

use std::collections::{HashMap, HashSet};

use evenkeel_core::balance::{LoadProfileKey, Move};
use evenkeel_store::{MoveBatch, Moved, Now, Scope, StoreError};

use super::Counts;
use super::rebalances::part_number;
use crate::PostgresStore;
use crate::columns::{get, micros, slot};
use crate::error::Tried;
use crate::pool::Connection;

struct Args {
    tenant: i32,
    now: Option<i64>,
    batch: MoveBatch,
    columns: MoveColumns,
}

/// Moves to rhythms that are given, as arrays, in the order in which everybody locks jobs.
struct MoveColumns {
    job_no: Vec<i64>,
    generation: Vec<i32>,
    old_at: Vec<i64>,
    new_at: Vec<i64>,
    slot: Vec<i32>,
    rhythm: Vec<i64>,
}

impl MoveColumns {
    fn new(batch: &MoveBatch) -> Self {
        let given: HashSet<LoadProfileKey> = batch.rhythms.iter().map(|(key, _)| *key).collect();
        let moves = batch.moves.iter();
        let mut sorted: Vec<&Move> = moves.filter(|one| given.contains(&one.rhythm)).collect();
        sorted.sort_unstable_by_key(|one| one.job);
        let all = || sorted.iter();
        Self {
            job_no: all().map(|one| one.job.0).collect(),
            generation: all().map(|one| one.generation).collect(),
            old_at: all().map(|one| one.old_at.as_micros()).collect(),
            new_at: all().map(|one| one.new_at.as_micros()).collect(),
            slot: all().filter_map(|one| slot(Some(one.new_at))).collect(),
            rhythm: all().map(|one| one.rhythm.0).collect(),
        }
    }
}

pub(super) async fn move_jobs(
    store: &PostgresStore,
    scope: &Scope,
    batch: MoveBatch,
    now: Now,
) -> Result<Moved, StoreError> {
    let columns = MoveColumns::new(&batch);
    let args = Args { tenant: scope.tenant.0, now: micros(now.literal()), batch, columns };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Moved> {
    let Args { tenant, now, batch, .. } = args;
    let part = part_number(batch.part);
    let lock = sql!("move_jobs_lock");
    let locked = connection.maybe_row(lock, &[&batch.rebalance, tenant, &part, now]).await?;
    let Some(row) = locked else { return Ok(Moved::Stopped) };
    let now: i64 = get(&row, 0)?;
    let (moved, counts) = write(connection, args, now).await?;
    let made: Vec<bool> = batch.moves.iter().map(|one| moved.contains(&one.job.0)).collect();
    let not_made = i64::try_from(made.len() - moved.len()).unwrap_or(i64::MAX);
    let moved = i64::try_from(moved.len()).unwrap_or(i64::MAX);
    let sql = sql!("move_jobs_done");
    connection.change(sql, &[&batch.rebalance, &part, &made, &moved, &not_made, &now]).await?;
    counts.write(connection).await?;
    Ok(Moved::Done(made))
}

/// Which jobs were moved, and what that does to the counts.
async fn write<'a>(
    connection: &Connection,
    args: &'a Args,
    now: i64,
) -> Tried<(HashSet<i64>, Counts<'a>)> {
    let MoveColumns { job_no, generation, old_at, new_at, slot, rhythm } = &args.columns;
    let sql = sql!("move_jobs");
    let (tenant, even_live) = (args.tenant, args.batch.even_live);
    let row = connection
        .row(sql, &[&now, &tenant, &even_live, job_no, generation, old_at, new_at, slot, rhythm])
        .await?;
    let moved: Vec<i64> = get::<Option<_>>(&row, 0)?.unwrap_or_default();
    let left: Vec<Option<i64>> = get::<Option<_>>(&row, 1)?.unwrap_or_default();
    let joined: Vec<i64> = get::<Option<_>>(&row, 2)?.unwrap_or_default();
    let costs: Vec<i64> = get::<Option<_>>(&row, 3)?.unwrap_or_default();
    let texts = args.batch.rhythms.iter().map(|(key, rhythm)| (key.0, rhythm.as_str()));
    let texts: HashMap<i64, &str> = texts.collect();
    let mut counts = Counts::default();
    for ((left, joined), cost) in left.iter().zip(&joined).zip(&costs) {
        let Some(left) = left else { continue };
        counts.leave(tenant, *left, *cost);
        counts.come(tenant, *joined, texts.get(joined).copied().unwrap_or_default(), *cost);
    }
    Ok((moved.into_iter().collect(), counts))
}
