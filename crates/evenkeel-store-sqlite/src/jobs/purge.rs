//! Forgets what a deleted job has left.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{RunLink, attempt_key_from_columns};
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Answer;
use crate::rows::{collect, key_from, key_params, link, link_columns};
use crate::{dead_letters, notes};

/// Where a link is cut, so many rows of all jobs are searched for what is before it.
const SEARCHED_MAX: i64 = 10_000;

/// Where the history of a deleted job is found.
struct Past {
    job: JobNo,
    head: Option<RunLink>,
    /// What retention would keep, wherever it is.
    kept: [Option<i64>; 2],
}

/// The attempts of a chain.
struct Chain {
    attempts: Vec<AttemptKey>,
    goes_on: bool,
    before: Option<RunLink>,
}

pub(crate) fn purge(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    limit: u32,
) -> Answer<u64> {
    let past = connection
        .prepare_cached(sql!("purge_find"))?
        .query_row(params![tenant.0, id.0.as_bytes().as_slice()], |row| {
            let head = link(row.get(1)?, row.get(2)?);
            Ok(Past { job: JobNo(row.get(0)?), head, kept: [row.get(3)?, row.get(4)?] })
        })
        .optional()?;
    let Some(past) = past else { return Ok(0) };
    let letters = dead_letters::purge(connection, past.job, limit)?;
    if letters >= u64::from(limit) {
        return Ok(letters);
    }
    let (mut forgotten, mut next, mut left) = (letters, past.head, Vec::new());
    while let Some(at) = next
        && forgotten < u64::from(limit)
    {
        let chain = read_chain(connection, past.job, at)?;
        next = chain.before;
        if chain.goes_on {
            left.push(at);
        } else {
            forgotten += forget(connection, &chain.attempts)?;
        }
    }
    relink(connection, past.job, &left, next)?;
    if next.is_none() && forgotten < u64::from(limit) {
        forgotten += forget(connection, &kept(connection, &past)?)?;
    }
    Ok(forgotten)
}

fn read_chain(connection: &Connection, job: JobNo, at: RunLink) -> Answer<Chain> {
    let (time, sequence) = (at.scheduled_at.as_micros(), at.sequence.bits());
    let mut statement = connection.prepare_cached(sql!("list_attempts_links"))?;
    let mut rows = statement.query(params![time, job.0, sequence])?;
    let mut chain = Chain { attempts: Vec::new(), goes_on: false, before: None };
    let mut is_linked = false;
    while let Some(row) = rows.next()? {
        let attempt: i16 = row.get("attempt")?;
        let status: i16 = row.get("status")?;
        let open = [AttemptStatus::Pending.code(), AttemptStatus::Running.code()];
        chain.attempts.push(attempt_key_from_columns(
            time,
            job.0,
            sequence.cast_signed(),
            attempt,
        )?);
        chain.goes_on |= open.contains(&status);
        if attempt == AttemptNo::FIRST.0.cast_signed() {
            chain.before = link(row.get("prev_at")?, row.get("prev_sequence")?);
            is_linked = true;
        }
    }
    if !is_linked {
        chain.before = before_cut(connection, job, at.scheduled_at)?;
    }
    Ok(chain)
}

fn before_cut(connection: &Connection, job: JobNo, at: Timestamp) -> Answer<Option<RunLink>> {
    let mut statement = connection.prepare_cached(sql!("list_attempts_before_cut"))?;
    let which = params![at.as_micros(), job.0, SEARCHED_MAX];
    let found = statement.query_row(which, |row| Ok(link(row.get(0)?, row.get(1)?)));
    Ok(found.optional()?.flatten())
}

fn forget(connection: &Connection, attempts: &[AttemptKey]) -> Answer<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_delete"))?;
    let mut forgotten = 0;
    for key in attempts {
        forgotten += statement.execute(key_params(*key))? as u64;
        notes::forget(connection, *key)?;
        notes::forget_checkpoint(connection, *key)?;
    }
    Ok(forgotten)
}

fn kept(connection: &Connection, past: &Past) -> Answer<Vec<AttemptKey>> {
    let mut statement = connection.prepare_cached(sql!("purge_kept"))?;
    collect(statement.query(params![past.job.0, past.kept[0], past.kept[1]])?, key_from)
}

/// The chains that are left hang together again.
fn relink(
    connection: &Connection,
    job: JobNo,
    left: &[RunLink],
    rest: Option<RunLink>,
) -> Answer<()> {
    let (head_at, head_sequence) = link_columns(left.first().copied().or(rest));
    connection.prepare_cached(sql!("set_job_head"))?.execute(params![
        job.0,
        head_at,
        head_sequence
    ])?;
    for (nth, chain) in left.iter().enumerate() {
        let (prev_at, prev_sequence) = link_columns(left.get(nth + 1).copied().or(rest));
        connection.prepare_cached(sql!("purge_relink"))?.execute(params![
            job.0,
            chain.scheduled_at.as_micros(),
            chain.sequence.bits(),
            prev_at,
            prev_sequence,
        ])?;
    }
    Ok(())
}
