//! Deletes a job, and ends what goes on of it.

use evenkeel_core::run::{Outcome, RunStatus};
use evenkeel_core::{Attempt, JobId, JobNo, RunKey, TenantNo, Timestamp};
use evenkeel_store::{Deleted, Now, RunLink, run_key_from_columns};
use rusqlite::{Connection, OptionalExtension, params};

use crate::clock::resolve;
use crate::error::Answer;
use crate::fire::link_in;
use crate::rows::{key_from, key_params, link, link_columns};
use crate::{labels, watch};

/// So many chains are searched for running attempts, however many the job says are live.
const SEARCHED_MAX: u32 = 10_000;

pub(crate) fn delete(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    now: Now,
) -> Answer<Deleted> {
    let now = resolve(now);
    let found: Option<i64> = connection
        .prepare_cached(include_str!("../queries/trigger_find.sql"))?
        .query_row(params![tenant.0, id.0.as_bytes().as_slice()], |row| row.get(0))
        .optional()?;
    let Some(no) = found else { return Ok(Deleted::NotFound) };
    connection
        .prepare_cached(include_str!("../queries/delete_job.sql"))?
        .execute(params![no, now.as_micros()])?;
    connection.prepare_cached(include_str!("../queries/delete_job_state.sql"))?.execute([no])?;
    crate::jobs::count_jobs(connection, tenant, -1)?;
    watch::forget(connection, JobNo(no))?;
    labels::forget(connection, JobNo(no))?;
    Ok(Deleted::Done(end_all(connection, JobNo(no), Outcome::Cancelled, now)?.running))
}

/// What went on of a job.
#[derive(Default)]
pub(crate) struct Ended {
    /// So many attempts waited.
    pub(crate) withdrawn: usize,
    /// These run, and were asked to end.
    pub(crate) running: Vec<RunKey>,
}

/// Ends what goes on of a job: what waits is recorded as `outcome`, what runs is asked to end.
pub(crate) fn end_all(
    connection: &Connection,
    job: JobNo,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<Ended> {
    let no = job.0;
    let withdrawn = withdraw_wakes(connection, no, outcome, now)?
        + withdraw_ready(connection, no, outcome, now)?;
    let closed = connection
        .prepare_cached(include_str!("../queries/delete_close_chains.sql"))?
        .query_row(params![no, withdrawn], |row| {
            Ok((row.get::<_, u32>(0)?, link(row.get(1)?, row.get(2)?)))
        })
        .optional()?;
    let Some((live, head)) = closed else { return Ok(Ended::default()) };
    let running = find_running(connection, job, head, live)?;
    for (node, key) in &running {
        ask_to_end(connection, *node, *key, outcome == Outcome::Superseded)?;
    }
    Ok(Ended { withdrawn, running: running.into_iter().map(|(_, key)| key).collect() })
}

/// Asks a running attempt to end. Whoever asked first has said why.
pub(crate) fn ask_to_end(
    connection: &Connection,
    node: i32,
    key: RunKey,
    superseded: bool,
) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    connection
        .prepare_cached(include_str!("../queries/delete_cancel_running.sql"))?
        .execute(params![node, scheduled_at, job_no, sequence, attempt, superseded])?;
    Ok(())
}

/// Retries and triggers that waited for their time. Says how many.
fn withdraw_wakes(
    connection: &Connection,
    no: i64,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<usize> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/delete_withdraw_wakes.sql"))?;
    let mut rows = statement.query([no])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push((key_from(row)?, TenantNo(row.get("tenant_no")?)));
    }
    // Oldest first, so that the newest becomes the job's head.
    keys.sort();
    for (key, tenant) in &keys {
        let prev = link_in(connection, *key)?;
        record_withdrawn(connection, *key, *tenant, prev, outcome, now)?;
    }
    Ok(keys.len())
}

/// Attempts that waited for a worker. Says how many.
fn withdraw_ready(
    connection: &Connection,
    no: i64,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<usize> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/delete_withdraw_ready.sql"))?;
    let mut rows = statement.query([no])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let prev = link(row.get("prev_at")?, row.get("prev_sequence")?);
        found.push((key_from(row)?, TenantNo(row.get("tenant_no")?), prev));
    }
    for (key, tenant, prev) in &found {
        record_withdrawn(connection, *key, *tenant, *prev, outcome, now)?;
    }
    Ok(found.len())
}

pub(crate) fn record_withdrawn(
    connection: &Connection,
    key: RunKey,
    tenant: TenantNo,
    prev: Option<RunLink>,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<()> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let (prev_at, prev_sequence) = link_columns(prev);
    connection.prepare_cached(include_str!("../queries/delete_record_withdrawn.sql"))?.execute(
        params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            tenant.0,
            prev_at,
            prev_sequence,
            now.as_micros(),
            RunStatus::from(outcome).code(),
        ],
    )?;
    Ok(())
}

/// Follows the job's chains from the newest until all that are live were found. Nothing waits any
/// more, so a live chain has a running attempt.
fn find_running(
    connection: &Connection,
    job: JobNo,
    head: Option<RunLink>,
    live: u32,
) -> Answer<Vec<(i32, RunKey)>> {
    let mut attempts =
        connection.prepare_cached(include_str!("../queries/list_runs_attempts.sql"))?;
    let (mut running, mut next, mut searched) = (Vec::new(), head, 0);
    while let Some(chain) = next
        && running.len() < live as usize
        && searched < SEARCHED_MAX
    {
        searched += 1;
        next = None;
        let (at, sequence) = (chain.scheduled_at.as_micros(), chain.sequence.bits());
        let mut rows = attempts.query(params![at, job.0, sequence])?;
        while let Some(row) = rows.next()? {
            let attempt: i16 = row.get("attempt")?;
            let node: Option<i32> = row.get("node_no")?;
            if row.get::<_, i16>("status")? == RunStatus::Running.code()
                && let Some(node) = node
            {
                let key = run_key_from_columns(at, job.0, sequence.cast_signed(), attempt)?;
                running.push((node, key));
            }
            if attempt == Attempt::FIRST.0.cast_signed() {
                next = link(row.get("prev_at")?, row.get("prev_sequence")?);
            }
        }
    }
    if running.len() < live as usize {
        add_long_runs(connection, job, &mut running)?;
    }
    Ok(running)
}

/// An attempt that has run for very long may lie behind chains that retention has cut away.
fn add_long_runs(
    connection: &Connection,
    job: JobNo,
    running: &mut Vec<(i32, RunKey)>,
) -> Answer<()> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/delete_find_long_runs.sql"))?;
    let mut rows = statement.query([job.0])?;
    while let Some(row) = rows.next()? {
        let found = (row.get("node_no")?, key_from(row)?);
        if !running.contains(&found) {
            running.push(found);
        }
    }
    Ok(())
}
