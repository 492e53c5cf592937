//! Ends runs early: withdraws waiting attempts and asks running attempts to stop.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{RunCancelled, RunLink};
use rusqlite::Connection;

use crate::conditions;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{JobHead, job_head, key_from, key_in_run, prev_from};
use crate::schedules::fire_delayed::link_in;

/// Maximum number of runs that are searched for running attempts of one job.
const SEARCHED_MAX: u32 = 10_000;

pub(crate) fn cancel_run(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
    now: Timestamp,
) -> Answer<RunCancelled> {
    if let Some(Taken { key, prev, .. }) = take_waiting(connection, tenant, key)? {
        let (ended, outcome) = (1_u64, Outcome::Cancelled);
        record_withdrawn(connection, key, tenant, prev, outcome, now)?;
        connection.run(sql!("command_close_runs"), &[&key.job_no, &ended, &outcome])?;
        conditions::mark_after_failure(connection, key.job_no)?;
        return Ok(RunCancelled::Withdrawn(key));
    }
    let run: Params<'_> = &[&key.scheduled_at, &key.job_no, &key.sequence, &tenant];
    let last: Option<(u16, i16, Option<i32>)> =
        connection.maybe_row(sql!("cancel_run_last"), run, |row| {
            Ok((row.get("attempt")?, row.get("status")?, row.get("node_no")?))
        })?;
    match last {
        None => Ok(RunCancelled::NotFound),
        Some((attempt, status, Some(node))) if status == AttemptStatus::Running.code() => {
            let key = key.with_attempt(AttemptNo(attempt));
            ask_to_end(connection, NodeNo(node), key, false)?;
            Ok(RunCancelled::Asked(key))
        }
        Some(_) => Ok(RunCancelled::Over),
    }
}

/// A waiting attempt that was removed from the queue or from the delayed attempts.
pub(super) struct Taken {
    pub(super) key: AttemptKey,
    pub(super) prev: Option<RunLink>,
    pub(super) fence: Fence,
    pub(super) crashes: u16,
}

/// Removes the waiting attempt of a run, if it has one.
pub(super) fn take_waiting(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
) -> Answer<Option<Taken>> {
    let run: Params<'_> = &[&key.scheduled_at, &key.job_no, &key.sequence, &tenant];
    if let Some(attempt) = connection.maybe_value(sql!("cancel_run_delayed"), run)? {
        let key = key.with_attempt(AttemptNo(attempt));
        let prev = link_in(connection, key)?;
        return Ok(Some(Taken { key, prev, fence: Fence::NONE, crashes: 0 }));
    }
    connection.maybe_row(sql!("cancel_run_ready"), run, |row| {
        Ok(Taken {
            key: key.with_attempt(AttemptNo(row.get("attempt")?)),
            prev: prev_from(row)?,
            fence: Fence(row.get("fence")?),
            crashes: row.get("crashes")?,
        })
    })
}

/// Returns `None` if no cancellation of the attempt was requested, otherwise whether a newer run of
/// the job supersedes it.
pub(super) fn is_asked_to_end(
    connection: &Connection,
    node: NodeNo,
    key: AttemptKey,
) -> Answer<Option<bool>> {
    connection.maybe_value(sql!("cancel_run_is_asked"), &[&node, &key])
}

/// Ends the active runs of a job because a newer run replaces them. Waiting attempts are recorded
/// as superseded, and running attempts are asked to stop. Returns whether an attempt was waiting.
pub(crate) fn supersede_all(connection: &Connection, job: JobNo, now: Timestamp) -> Answer<bool> {
    let withdrawn = withdraw(connection, job, Outcome::Superseded, now)?;
    for (node, key) in find_running(connection, job, u32::MAX)? {
        ask_to_end(connection, node, key, true)?;
    }
    Ok(!withdrawn.is_empty())
}

/// Ends the waiting attempts of a job and their runs with `outcome`. Returns the keys of the ended
/// attempts.
pub(crate) fn withdraw(
    connection: &Connection,
    job: JobNo,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<Vec<AttemptKey>> {
    let mut delayed = connection.rows(sql!("command_withdraw_delayed"), &[&job], |row| {
        Ok((key_from(row)?, TenantNo(row.get("tenant_no")?)))
    })?;
    let mut withdrawn = Vec::new();
    // Links the oldest run first, so that the newest run becomes the head of the job's list of
    // runs.
    delayed.sort();
    for (key, tenant) in delayed {
        let prev = link_in(connection, key)?;
        record_withdrawn(connection, key, tenant, prev, outcome, now)?;
        withdrawn.push(key);
    }
    let queued = connection.rows(sql!("command_withdraw_ready"), &[&job], |row| {
        Ok((key_from(row)?, TenantNo(row.get("tenant_no")?), prev_from(row)?))
    })?;
    for (key, tenant, prev) in queued {
        record_withdrawn(connection, key, tenant, prev, outcome, now)?;
        withdrawn.push(key);
    }
    withdrawn.sort_unstable();
    connection.run(sql!("command_close_runs"), &[&job, &withdrawn.len(), &outcome])?;
    Ok(withdrawn)
}

/// Asks a running attempt to stop. If the attempt was already asked to stop, the first reason is
/// kept.
pub(crate) fn ask_to_end(
    connection: &Connection,
    node: NodeNo,
    key: AttemptKey,
    superseded: bool,
) -> Answer<()> {
    connection.run(sql!("command_cancel_running"), &[&node, &key, &superseded])
}

fn record_withdrawn(
    connection: &Connection,
    key: AttemptKey,
    tenant: TenantNo,
    prev: Option<RunLink>,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<()> {
    connection.run(sql!("command_record_withdrawn"), &[&key, &tenant, &prev, &now, &outcome])
}

/// Follows the runs of a job from the newest to the oldest, and stops at `count` running attempts
/// or once every live run is found.
pub(crate) fn find_running(
    connection: &Connection,
    job: JobNo,
    count: u32,
) -> Answer<Vec<(NodeNo, AttemptKey)>> {
    let Some(JobHead { live, head: mut next, .. }) = job_head(connection, job)? else {
        return Ok(Vec::new());
    };
    let count = live.min(count) as usize;
    let mut attempts = connection.prepare_cached(sql!("command_find_running"))?;
    let (mut running, mut searched) = (Vec::new(), 0);
    while let Some(run) = next
        && running.len() < count
        && searched < SEARCHED_MAX
    {
        searched += 1;
        next = None;
        let mut rows = attempts.select(&[&run.scheduled_at, &job, &run.sequence])?;
        while let Some(row) = rows.next()? {
            let key = key_in_run(row, job, run)?;
            if row.get::<_, i16>("status")? == AttemptStatus::Running.code()
                && let Some(node) = row.get("node_no")?
            {
                running.push((NodeNo(node), key));
            }
            if key.attempt == AttemptNo::FIRST {
                next = next.or(prev_from(row)?);
            }
        }
    }
    if running.len() < count {
        // Adds long-running attempts, because retention may have deleted the links to their runs.
        let long = connection.rows(sql!("command_find_long_attempts"), &[&job], |row| {
            Ok((NodeNo(row.get("node_no")?), key_from(row)?))
        })?;
        for found in long {
            if !running.contains(&found) {
                running.push(found);
            }
        }
    }
    Ok(running)
}
