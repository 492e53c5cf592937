//! Deletes the history of a deleted job.

use std::collections::HashSet;

use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::rows::{count, get};

/// Maximum number of active runs that one purge step skips.
const SKIPPED_MAX: u32 = 1_000;

/// Scheduled time and sequence of a run.
type Run = (i64, i32);

pub(super) async fn purge(
    connection: &Connection,
    tenant: i32,
    id: Uuid,
    limit: u32,
) -> Tried<u64> {
    let depth = i64::from(limit.saturating_add(SKIPPED_MAX));
    let rows = connection.rows(sql!("purge_lock_runs"), &[&id, &tenant, &depth]).await?;
    let locked = rows.iter().map(run_of).collect::<Tried<HashSet<Run>>>()?;
    let Some(row) = connection.maybe_row(sql!("purge_lock"), &[&id, &tenant]).await? else {
        return Ok(0);
    };
    let job_no: i64 = get(&row, "job_no")?;
    let dead_letters = connection.change(sql!("purge_dead"), &[&job_no, &i64::from(limit)]).await?;
    let limit = u64::from(limit);
    if dead_letters >= limit {
        return Ok(dead_letters);
    }
    let rows = connection.rows(sql!("purge_find"), &[&job_no, &depth]).await?;
    let (mut deleted, mut left, mut rest) = (Vec::new(), Vec::new(), None);
    let mut attempts = 0;
    for row in &rows {
        let run = run_of(row)?;
        if dead_letters + attempts >= limit {
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
    if rest.is_none() && deleted_count < limit {
        let rows = connection.rows(sql!("purge_kept"), &[&job_no]).await?;
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
    // Runs are deleted in the order in which pruning locks runs, so that purging and pruning cannot
    // deadlock.
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    let (times, sequences): (Vec<i64>, Vec<i32>) = runs.into_iter().unzip();
    count(&connection.row(sql!("purge_delete"), &[&job_no, &times, &sequences]).await?, 0)
}

/// Links the remaining runs of a job to each other.
async fn relink(
    connection: &Connection,
    job_no: i64,
    left: &[Run],
    rest: Option<Run>,
) -> Tried<()> {
    let (head_at, head_sequence) = left.first().copied().or(rest).unzip();
    connection.change(sql!("set_job_head"), &[&job_no, &head_at, &head_sequence]).await?;
    for (nth, (at, sequence)) in left.iter().enumerate() {
        let (prev_at, prev_sequence) = left.get(nth + 1).copied().or(rest).unzip();
        let params: Params<'_> = &[&job_no, at, sequence, &prev_at, &prev_sequence];
        connection.change(sql!("prune_relink"), params).await?;
    }
    Ok(())
}
