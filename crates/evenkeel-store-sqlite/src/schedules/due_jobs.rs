//! Loads due and changed jobs for the scheduler.

use evenkeel_core::{JobNo, Shard, Slot};
use evenkeel_store::DueJob;
use rusqlite::Connection;

use crate::connection::{RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::due_job_from;

pub(crate) fn load_due(
    connection: &Connection,
    shard: Shard,
    until: Slot,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<Vec<DueJob>> {
    let after = after.unwrap_or(JobNo(0));
    connection.rows(sql!("load_due"), &[&shard, &until, &after, &limit], due_job_from)
}

pub(crate) fn load_jobs(connection: &Connection, jobs: &[JobNo]) -> Answer<Vec<DueJob>> {
    let mut statement = connection.prepare_cached(sql!("load_jobs"))?;
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        found.extend(statement.maybe_row(&[job], due_job_from)?);
    }
    Ok(found)
}

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
        found.extend(statement.rows(&[shard, &left], |row| Ok(JobNo(row.get(0)?)))?);
    }
    Ok(found)
}

/// Loads the changed jobs and deletes their rows in the table `changed_job`.
pub(crate) fn take_changed(connection: &Connection, jobs: &[JobNo]) -> Answer<Vec<DueJob>> {
    let mut take = connection.prepare_cached(sql!("look_ahead_take_changed"))?;
    let mut taken = Vec::with_capacity(jobs.len());
    for job in jobs {
        if take.change(&[&Shard::of(*job), job])? == 1 {
            taken.push(*job);
        }
    }
    load_jobs(connection, &taken)
}
