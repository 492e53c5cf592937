//! Ends runs early: withdraws waiting attempts and asks running attempts to stop.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, TenantNo, Timestamp};
use evenkeel_store::{Now, RunCancelled, RunLink, attempt_key_from_columns};
use rusqlite::{Connection, OptionalExtension, params};

use crate::conditions;
use crate::connection::clock::resolve;
use crate::error::Answer;
use crate::rows::{JobHead, collect, job_head, key_from, key_params, link_columns, prev_from};
use crate::schedules::fire_delayed::link_in;

/// Maximum number of runs that are searched for running attempts of one job.
const SEARCHED_MAX: u32 = 10_000;

pub(crate) fn cancel_run(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
    now: Now,
) -> Answer<RunCancelled> {
    if let Some(Taken { key, prev, .. }) = take_waiting(connection, tenant, key)? {
        record_withdrawn(connection, key, tenant, prev, Outcome::Cancelled, resolve(now))?;
        close_runs(connection, key.job_no, 1, Outcome::Cancelled)?;
        conditions::mark_after_failure(connection, key.job_no)?;
        return Ok(RunCancelled::Withdrawn(key));
    }
    let last: Option<(u16, i16, Option<i32>)> = connection
        .prepare_cached(sql!("cancel_run_last"))?
        .query_row(run_params(tenant, key), |row| {
            Ok((row.get("attempt")?, row.get("status")?, row.get("node_no")?))
        })
        .optional()?;
    match last {
        None => Ok(RunCancelled::NotFound),
        Some((attempt, status, Some(node))) if status == AttemptStatus::Running.code() => {
            let key = key.with_attempt(AttemptNo(attempt));
            ask_to_end(connection, node, key, false)?;
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
    let delayed: Option<u16> = connection
        .prepare_cached(sql!("cancel_run_delayed"))?
        .query_row(run_params(tenant, key), |row| row.get("attempt"))
        .optional()?;
    if let Some(attempt) = delayed {
        let key = key.with_attempt(AttemptNo(attempt));
        let prev = link_in(connection, key)?;
        return Ok(Some(Taken { key, prev, fence: Fence::NONE, crashes: 0 }));
    }
    let queued = connection.prepare_cached(sql!("cancel_run_ready"))?.query_row(
        run_params(tenant, key),
        |row| {
            Ok(Taken {
                key: key.with_attempt(AttemptNo(row.get("attempt")?)),
                prev: prev_from(row)?,
                fence: Fence(row.get("fence")?),
                crashes: row.get("crashes")?,
            })
        },
    );
    Ok(queued.optional()?)
}

fn run_params(tenant: TenantNo, key: AttemptKey) -> (i64, i64, u32, i32) {
    (key.scheduled_at.as_micros(), key.job_no.0, key.sequence.bits(), tenant.0)
}

/// Counts `ended` runs of a job as finished with this outcome.
pub(super) fn close_runs(
    connection: &Connection,
    job: JobNo,
    ended: usize,
    outcome: Outcome,
) -> Answer<()> {
    let status = AttemptStatus::from(outcome).code();
    connection
        .prepare_cached(sql!("command_close_runs"))?
        .execute(params![job.0, ended, status])?;
    Ok(())
}

/// Returns `None` if no cancellation of the attempt was requested, otherwise whether a newer run of
/// the job supersedes it.
pub(super) fn is_asked_to_end(
    connection: &Connection,
    node: i32,
    key: AttemptKey,
) -> Answer<Option<bool>> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    Ok(connection
        .prepare_cached(sql!("cancel_run_is_asked"))?
        .query_row(params![node, scheduled_at, job_no, sequence, attempt], |row| row.get(0))
        .optional()?)
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
    let mut withdrawn = withdraw_delayed(connection, job.0, outcome, now)?;
    withdrawn.extend(withdraw_ready(connection, job.0, outcome, now)?);
    withdrawn.sort_unstable();
    close_runs(connection, job, withdrawn.len(), outcome)?;
    Ok(withdrawn)
}

/// Asks a running attempt to stop. If the attempt was already asked to stop, the first reason is
/// kept.
pub(crate) fn ask_to_end(
    connection: &Connection,
    node: i32,
    key: AttemptKey,
    superseded: bool,
) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    connection
        .prepare_cached(sql!("command_cancel_running"))?
        .execute(params![node, scheduled_at, job_no, sequence, attempt, superseded])?;
    Ok(())
}

fn withdraw_delayed(
    connection: &Connection,
    no: i64,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<Vec<AttemptKey>> {
    let mut statement = connection.prepare_cached(sql!("command_withdraw_delayed"))?;
    let mut keys = collect(statement.query([no])?, |row| {
        Ok((key_from(row)?, TenantNo(row.get("tenant_no")?)))
    })?;
    // Links the oldest run first, so that the newest run becomes the head of the job's list of
    // runs.
    keys.sort();
    for (key, tenant) in &keys {
        let prev = link_in(connection, *key)?;
        record_withdrawn(connection, *key, *tenant, prev, outcome, now)?;
    }
    Ok(keys.into_iter().map(|(key, _)| key).collect())
}

fn withdraw_ready(
    connection: &Connection,
    no: i64,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<Vec<AttemptKey>> {
    let mut statement = connection.prepare_cached(sql!("command_withdraw_ready"))?;
    let mut rows = statement.query([no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let prev = prev_from(row)?;
        found.push((key_from(row)?, TenantNo(row.get("tenant_no")?), prev));
    }
    for (key, tenant, prev) in &found {
        record_withdrawn(connection, *key, *tenant, *prev, outcome, now)?;
    }
    Ok(found.into_iter().map(|(key, _, _)| key).collect())
}

pub(crate) fn record_withdrawn(
    connection: &Connection,
    key: AttemptKey,
    tenant: TenantNo,
    prev: Option<RunLink>,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let (prev_at, prev_sequence) = link_columns(prev);
    connection.prepare_cached(sql!("command_record_withdrawn"))?.execute(params![
        scheduled_at,
        job_no,
        sequence,
        attempt,
        tenant.0,
        prev_at,
        prev_sequence,
        now.as_micros(),
        AttemptStatus::from(outcome).code(),
    ])?;
    Ok(())
}

/// Follows the runs of a job from the newest to the oldest, and stops at `count` running attempts
/// or once every live run is found.
pub(crate) fn find_running(
    connection: &Connection,
    job: JobNo,
    count: u32,
) -> Answer<Vec<(i32, AttemptKey)>> {
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
        let (at, sequence) = (run.scheduled_at.as_micros(), run.sequence.bits());
        let mut rows = attempts.query(params![at, job.0, sequence])?;
        while let Some(row) = rows.next()? {
            let attempt: i16 = row.get("attempt")?;
            let node: Option<i32> = row.get("node_no")?;
            if row.get::<_, i16>("status")? == AttemptStatus::Running.code()
                && let Some(node) = node
            {
                let key = attempt_key_from_columns(at, job.0, sequence.cast_signed(), attempt)?;
                running.push((node, key));
            }
            if attempt == AttemptNo::FIRST.0.cast_signed() {
                next = next.or(prev_from(row)?);
            }
        }
    }
    if running.len() < count {
        add_long_attempts(connection, job, &mut running)?;
    }
    Ok(running)
}

/// Adds long-running attempts, because retention may have deleted the links to their runs.
fn add_long_attempts(
    connection: &Connection,
    job: JobNo,
    running: &mut Vec<(i32, AttemptKey)>,
) -> Answer<()> {
    let mut statement = connection.prepare_cached(sql!("command_find_long_attempts"))?;
    let mut rows = statement.query([job.0])?;
    while let Some(row) = rows.next()? {
        let found = (row.get("node_no")?, key_from(row)?);
        if !running.contains(&found) {
            running.push(found);
        }
    }
    Ok(())
}
