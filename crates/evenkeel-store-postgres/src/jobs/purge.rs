//! Deletes the history of a deleted job.

use std::collections::HashSet;

use evenkeel_core::JobId;
use evenkeel_store::{Scope, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::{Failure, Tried};
use crate::rows::{count, get};

/// Maximum number of active runs that one step skips.
const SKIPPED_MAX: u32 = 1_000;

struct Args {
    tenant: i32,
    id: Uuid,
    limit: u32,
}

/// Scheduled time and sequence of a run.
type Run = (i64, i32);

pub(super) async fn purge(
    store: &PostgresStore,
    scope: &Scope,
    id: JobId,
    limit: u32,
) -> Result<u64, StoreError> {
    let args = Args { tenant: scope.tenant.0, id: id.0, limit };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<u64> {
    let depth = i64::from(args.limit.saturating_add(SKIPPED_MAX));
    let lock = sql!("purge_lock_runs");
    let rows = connection.rows(lock, &[&args.id, &args.tenant, &depth]).await?;
    let locked = rows.iter().map(run_of).collect::<Tried<HashSet<Run>>>()?;
    let lock = sql!("purge_lock");
    let Some(row) = connection.maybe_row(lock, &[&args.id, &args.tenant]).await? else {
        return Ok(0);
    };
    let job_no: i64 = get(&row, "job_no")?;
    let sql = sql!("purge_dead");
    let dead_letters = connection.change(sql, &[&job_no, &i64::from(args.limit)]).await?;
    if dead_letters >= u64::from(args.limit) {
        return Ok(dead_letters);
    }
    let look = sql!("purge_find");
    let rows = connection.rows(look, &[&job_no, &depth]).await?;
    let (mut deleted, mut left, mut rest) = (Vec::new(), Vec::new(), None);
    let mut attempts = 0;
    for row in &rows {
        let run = run_of(row)?;
        if dead_letters + attempts >= u64::from(args.limit) {
            rest = Some(run);
            break;
        }
        if get(row, "is_active")? {
            left.push(run);
        } else {
            deleted.push(run);
            attempts += count(row, "attempts")?;
        }
    }
    // Another purge has deleted rows, so this purge has read older runs than it has locked.
    if !left.iter().all(|run| locked.contains(run)) {
        return Err(Failure::Again);
    }
    let mut deleted_count = dead_letters + delete_runs(connection, job_no, &deleted).await?;
    relink(connection, job_no, &left, rest).await?;
    if rest.is_none() && deleted_count < u64::from(args.limit) {
        let sql = sql!("purge_kept");
        let rows = connection.rows(sql, &[&job_no]).await?;
        let kept = rows.iter().map(run_of).collect::<Tried<Vec<Run>>>()?;
        deleted_count += delete_runs(connection, job_no, &kept).await?;
    }
    Ok(deleted_count)
}

fn run_of(row: &Row) -> Tried<Run> {
    Ok((get(row, 0)?, get(row, 1)?))
}

async fn delete_runs(connection: &Connection, job_no: i64, runs: &[Run]) -> Tried<u64> {
    if runs.is_empty() {
        return Ok(0);
    }
    // Runs are deleted in the order in which pruning locks them, so that the two cannot deadlock.
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    let (times, sequences): (Vec<i64>, Vec<i32>) = runs.into_iter().unzip();
    let sql = sql!("purge_delete");
    Ok(count(&connection.row(sql, &[&job_no, &times, &sequences]).await?, 0)?)
}

/// Links the remaining runs of a job to each other.
async fn relink(
    connection: &Connection,
    job_no: i64,
    left: &[Run],
    rest: Option<Run>,
) -> Tried<()> {
    let columns = |run: Option<Run>| (run.map(|(at, _)| at), run.map(|(_, sequence)| sequence));
    let (head_at, head_sequence) = columns(left.first().copied().or(rest));
    let sql = sql!("set_job_head");
    connection.change(sql, &[&job_no, &head_at, &head_sequence]).await?;
    for (nth, (at, sequence)) in left.iter().enumerate() {
        let (prev_at, prev_sequence) = columns(left.get(nth + 1).copied().or(rest));
        let sql = sql!("prune_relink");
        connection.change(sql, &[&job_no, at, sequence, &prev_at, &prev_sequence]).await?;
    }
    Ok(())
}
