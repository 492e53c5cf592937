//! Deletes the history of deleted jobs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo};
use evenkeel_store::{RunLink, attempt_key_from_columns};
use rusqlite::{Connection, OptionalExtension, params};

use crate::attempts::list::before_cut;
use crate::error::Answer;
use crate::rows::{collect, head_from, key_from, key_params, link_columns, prev_from};
use crate::{dead_letters, notes};

/// The newest run of a deleted job, from which its history is followed.
struct History {
    job: JobNo,
    head: Option<RunLink>,
    /// The scheduled times of the newest success and the newest failure, which retention keeps even
    /// if no run links to them.
    kept: [Option<i64>; 2],
}

struct Run {
    attempts: Vec<AttemptKey>,
    is_active: bool,
    before: Option<RunLink>,
}

pub(crate) fn purge(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    limit: u32,
) -> Answer<u64> {
    let history = connection
        .prepare_cached(sql!("purge_find"))?
        .query_row(params![tenant.0, id.0.as_bytes().as_slice()], |row| {
            let kept = [row.get("succeeded_at")?, row.get("failed_at")?];
            Ok(History { job: JobNo(row.get("job_no")?), head: head_from(row)?, kept })
        })
        .optional()?;
    let Some(history) = history else { return Ok(0) };
    let letters = dead_letters::purge(connection, history.job, limit)?;
    if letters >= u64::from(limit) {
        return Ok(letters);
    }
    let (mut deleted, mut next, mut left) = (letters, history.head, Vec::new());
    while let Some(at) = next
        && deleted < u64::from(limit)
    {
        let run = read_run(connection, history.job, at)?;
        next = run.before;
        if run.is_active {
            left.push(at);
        } else {
            deleted += delete(connection, &run.attempts)?;
        }
    }
    relink(connection, history.job, &left, next)?;
    if next.is_none() && deleted < u64::from(limit) {
        deleted += delete(connection, &kept(connection, &history)?)?;
    }
    Ok(deleted)
}

fn read_run(connection: &Connection, job: JobNo, at: RunLink) -> Answer<Run> {
    let (time, sequence) = (at.scheduled_at.as_micros(), at.sequence.bits());
    let mut statement = connection.prepare_cached(sql!("list_attempts_links"))?;
    let mut rows = statement.query(params![time, job.0, sequence])?;
    let mut run = Run { attempts: Vec::new(), is_active: false, before: None };
    let mut is_linked = false;
    while let Some(row) = rows.next()? {
        let attempt: i16 = row.get("attempt")?;
        let status: i16 = row.get("status")?;
        let open = [AttemptStatus::Pending.code(), AttemptStatus::Running.code()];
        run.attempts.push(attempt_key_from_columns(time, job.0, sequence.cast_signed(), attempt)?);
        run.is_active |= open.contains(&status);
        if attempt == AttemptNo::FIRST.0.cast_signed() {
            run.before = prev_from(row)?;
            is_linked = true;
        }
    }
    if !is_linked {
        run.before = before_cut(connection, job, at)?;
    }
    Ok(run)
}

fn delete(connection: &Connection, attempts: &[AttemptKey]) -> Answer<u64> {
    let mut statement = connection.prepare_cached(sql!("prune_delete"))?;
    let mut deleted = 0;
    for key in attempts {
        deleted += statement.execute(key_params(*key))? as u64;
        notes::delete(connection, *key)?;
        notes::delete_checkpoint(connection, *key)?;
    }
    Ok(deleted)
}

fn kept(connection: &Connection, history: &History) -> Answer<Vec<AttemptKey>> {
    let mut statement = connection.prepare_cached(sql!("purge_kept"))?;
    collect(statement.query(params![history.job.0, history.kept[0], history.kept[1]])?, key_from)
}

/// Links the remaining runs of a job to each other.
fn relink(
    connection: &Connection,
    job: JobNo,
    left: &[RunLink],
    rest: Option<RunLink>,
) -> Answer<()> {
    let (head_at, head_sequence) = link_columns(left.first().copied().or(rest));
    connection
        .prepare_cached(sql!("set_job_head"))?
        .execute(params![job.0, head_at, head_sequence])?;
    for (nth, run) in left.iter().enumerate() {
        let (prev_at, prev_sequence) = link_columns(left.get(nth + 1).copied().or(rest));
        connection.prepare_cached(sql!("purge_relink"))?.execute(params![
            job.0,
            run.scheduled_at.as_micros(),
            run.sequence.bits(),
            prev_at,
            prev_sequence,
        ])?;
    }
    Ok(())
}
