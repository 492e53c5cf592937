//! Moves jobs to other start times, one batch per transaction, and reads the jobs that may be
//! moved.

use std::collections::{HashMap, HashSet};

use evenkeel_core::balance::{LoadProfileKey, Move, Placement};
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{MoveBatch, Moved, Now, Scope, StoreError};
use tokio_postgres::Row;

use super::load_profiles::Counts;
use super::rebalances::part_number;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{get, maybe_time, micros, slot, span, time};

struct Args {
    tenant: i32,
    now: Option<i64>,
    batch: MoveBatch,
    columns: MoveColumns,
}

/// Moves whose new load profile is in the batch, as arrays in lock order.
struct MoveColumns {
    job_no: Vec<i64>,
    generation: Vec<i32>,
    old_at: Vec<i64>,
    new_at: Vec<i64>,
    slot: Vec<i32>,
    profile: Vec<i64>,
}

impl MoveColumns {
    fn new(batch: &MoveBatch) -> Self {
        let given: HashSet<LoadProfileKey> = batch.profiles.iter().map(|(key, _)| *key).collect();
        let moves = batch.moves.iter();
        let mut sorted: Vec<&Move> =
            moves.filter(|planned| given.contains(&planned.profile)).collect();
        sorted.sort_unstable_by_key(|planned| planned.job);
        let all = || sorted.iter();
        Self {
            job_no: all().map(|planned| planned.job.0).collect(),
            generation: all().map(|planned| planned.generation).collect(),
            old_at: all().map(|planned| planned.old_at.as_micros()).collect(),
            new_at: all().map(|planned| planned.new_at.as_micros()).collect(),
            slot: all().filter_map(|planned| slot(Some(planned.new_at))).collect(),
            profile: all().map(|planned| planned.profile.0).collect(),
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
    let made: Vec<bool> =
        batch.moves.iter().map(|planned| moved.contains(&planned.job.0)).collect();
    let not_made = i64::try_from(made.len() - moved.len()).unwrap_or(i64::MAX);
    let moved = i64::try_from(moved.len()).unwrap_or(i64::MAX);
    let sql = sql!("move_jobs_done");
    connection.change(sql, &[&batch.rebalance, &part, &made, &moved, &not_made, &now]).await?;
    counts.write(connection).await?;
    Ok(Moved::Done(made))
}

/// Returns the moved jobs and the changes of the load profile counts.
async fn write<'a>(
    connection: &Connection,
    args: &'a Args,
    now: i64,
) -> Tried<(HashSet<i64>, Counts<'a>)> {
    let MoveColumns { job_no, generation, old_at, new_at, slot, profile } = &args.columns;
    let sql = sql!("move_jobs");
    let (tenant, even_live) = (args.tenant, args.batch.even_live);
    let row = connection
        .row(sql, &[&now, &tenant, &even_live, job_no, generation, old_at, new_at, slot, profile])
        .await?;
    let moved: Vec<i64> = get::<Option<_>>(&row, "moved")?.unwrap_or_default();
    let left: Vec<Option<i64>> = get::<Option<_>>(&row, "left_profiles")?.unwrap_or_default();
    let joined: Vec<i64> = get::<Option<_>>(&row, "joined_profiles")?.unwrap_or_default();
    let costs: Vec<i64> = get::<Option<_>>(&row, "costs")?.unwrap_or_default();
    let texts = args.batch.profiles.iter().map(|(key, profile)| (key.0, profile.as_str()));
    let texts: HashMap<i64, &str> = texts.collect();
    let mut counts = Counts::default();
    for ((left, joined), cost) in left.iter().zip(&joined).zip(&costs) {
        let Some(left) = left else { continue };
        counts.remove_from(tenant, *left, *cost);
        counts.add_to(tenant, *joined, texts.get(joined).copied().unwrap_or_default(), *cost);
    }
    Ok((moved.into_iter().collect(), counts))
}

/// If a range of job numbers holds more than this many numbers per job of the tenant, the jobs are
/// looked up one by one.
const OTHERS_MAX: i64 = 8;
/// Minimum number of jobs that one round scans. Without a minimum, a tenant with many stopped jobs
/// would need many small scans to fill a page.
const SCANNED_MIN: i64 = 1000;

pub(super) async fn placements(
    store: &PostgresStore,
    scope: &Scope,
    after: Option<JobNo>,
    limit: u32,
) -> Result<Vec<Placement>, StoreError> {
    let args = (scope.tenant.0, after.map_or(i64::MIN, |job| job.0), limit as usize);
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, mut after, limit) = *args;
            let mut found = Vec::new();
            // The scan does not know which jobs are stopped, so it is repeated until the page has
            // enough active jobs.
            while found.len() < limit {
                let left = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
                let scanned = left.max(SCANNED_MIN);
                let sql = sql!("placements_bounds");
                let row = connection.row(sql, &[&tenant, &after, &scanned]).await?;
                let (first, last): (Option<i64>, Option<i64>) =
                    (get(&row, "first")?, get(&row, "last")?);
                let (Some(first), Some(last)) = (first, last) else { break };
                let seen: i64 = get(&row, "jobs")?;
                let sql = if (last - first) / OTHERS_MAX <= seen {
                    sql!("placements")
                } else {
                    sql!("placements_of_few")
                };
                for row in connection.rows(sql, &[&tenant, &first, &last]).await? {
                    found.push(read_placement(&row)?);
                }
                if seen < scanned {
                    break;
                }
                after = last;
            }
            found.truncate(limit);
            Ok(found)
        })
        .await
}

pub(super) async fn placements_of(
    store: &PostgresStore,
    scope: &Scope,
    jobs: &[JobNo],
) -> Result<Vec<Placement>, StoreError> {
    let jobs: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    store
        .api
        .run((scope.tenant.0, jobs), |connection, args| async move {
            let (tenant, jobs) = &*args;
            let sql = sql!("placements_of");
            connection.rows(sql, &[tenant, jobs]).await?.iter().map(read_placement).collect()
        })
        .await
}

fn read_placement(row: &Row) -> Tried<Placement> {
    Ok(Placement {
        job: JobNo(get(row, "job_no")?),
        seed: JobId(get(row, "id")?).seed(),
        generation: get(row, "generation")?,
        next_at: time(row, "next_at")?,
        last_fired_at: maybe_time(row, "last_fired_at")?,
        placed_at: time(row, "since")?,
        is_live: get(row, "is_live")?,
        profile: Some(get(row, "load_profile")?).filter(|key| *key != 0).map(LoadProfileKey),
        cost: span(get(row, "cost_us")?),
    })
}
