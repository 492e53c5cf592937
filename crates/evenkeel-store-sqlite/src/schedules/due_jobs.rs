//! Loads due and changed jobs for the scheduler.

use evenkeel_core::{JobNo, Shard, Slot};
use evenkeel_store::DueJob;
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::rows::{collect, due_job_from};

pub(crate) fn load_due(
    connection: &Connection,
    shard: Shard,
    until: Slot,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<Vec<DueJob>> {
    let mut statement = connection.prepare_cached(sql!("load_due"))?;
    let after = after.map_or(0, |no| no.0);
    collect(statement.query(params![shard.0, until.0, after, limit])?, due_job_from)
}

pub(crate) fn load_jobs(connection: &Connection, jobs: &[JobNo]) -> Answer<Vec<DueJob>> {
    let mut statement = connection.prepare_cached(sql!("load_jobs"))?;
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        if let Some(row) = statement.query([job.0])?.next()? {
            found.push(due_job_from(row)?);
        }
    }
    Ok(found)
}

/// Returns up to `limit` changed jobs of the shards.
pub(crate) fn changed_jobs(
    connection: &Connection,
    shards: &[Shard],
    limit: u32,
) -> Answer<Vec<JobNo>> {
    let mut statement = connection.prepare_cached(sql!("look_ahead_changed"))?;
    let mut found = Vec::new();
    for shard in shards {
        let left = (limit as usize).saturating_sub(found.len());
        if left == 0 {
            break;
        }
        let mut rows = statement.query(params![shard.0, left as i64])?;
        while let Some(row) = rows.next()? {
            found.push(JobNo(row.get(0)?));
        }
    }
    Ok(found)
}

/// Loads the changed jobs and deletes their rows in the table `changed_job`.
pub(crate) fn take_changed(connection: &Connection, jobs: &[JobNo]) -> Answer<Vec<DueJob>> {
    let mut take = connection.prepare_cached(sql!("look_ahead_take_changed"))?;
    let mut taken = Vec::with_capacity(jobs.len());
    for job in jobs {
        if take.execute(params![Shard::of(*job).0, job.0])? == 1 {
            taken.push(*job);
        }
    }
    load_jobs(connection, &taken)
}
