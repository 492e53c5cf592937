//! Deletes the history of deleted jobs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo, JobId, JobNo, TenantNo};
use evenkeel_store::RunLink;
use rusqlite::Connection;

use crate::attempts::list::before_cut;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::notes;
use crate::rows::{head_from, key_from, key_in_run, prev_from};

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
    let found = connection.maybe_row(sql!("purge_find"), &[&tenant, &id], |row| {
        let kept: [Option<i64>; 2] = [row.get("succeeded_at")?, row.get("failed_at")?];
        Ok((JobNo(row.get("job_no")?), head_from(row)?, kept))
    })?;
    // Retention keeps the newest success and the newest failure of a job, even if no run links to
    // them.
    let Some((job, mut next, [succeeded_at, failed_at])) = found else { return Ok(0) };
    let mut deleted = connection.change(sql!("purge_dead"), &[&job, &limit])?;
    if deleted >= u64::from(limit) {
        return Ok(deleted);
    }
    let mut left = Vec::new();
    while let Some(at) = next
        && deleted < u64::from(limit)
    {
        let run = read_run(connection, job, at)?;
        next = run.before;
        if run.is_active {
            left.push(at);
        } else {
            deleted += delete(connection, &run.attempts)?;
        }
    }
    relink(connection, job, &left, next)?;
    if next.is_none() && deleted < u64::from(limit) {
        let kept: Params<'_> = &[&job, &succeeded_at, &failed_at];
        deleted += delete(connection, &connection.rows(sql!("purge_kept"), kept, key_from)?)?;
    }
    Ok(deleted)
}

fn read_run(connection: &Connection, job: JobNo, at: RunLink) -> Answer<Run> {
    let mut statement = connection.prepare_cached(sql!("list_attempts_links"))?;
    let mut rows = statement.select(&[&at.scheduled_at, &job, &at.sequence])?;
    let mut run = Run { attempts: Vec::new(), is_active: false, before: None };
    let mut is_linked = false;
    while let Some(row) = rows.next()? {
        let key = key_in_run(row, job, at)?;
        let open = [AttemptStatus::Pending.code(), AttemptStatus::Running.code()];
        run.attempts.push(key);
        run.is_active |= open.contains(&row.get("status")?);
        if key.attempt == AttemptNo::FIRST {
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
        deleted += statement.change(&[key])?;
        notes::delete(connection, *key)?;
        notes::delete_checkpoint(connection, *key)?;
    }
    Ok(deleted)
}

/// Links the remaining runs of a job to each other.
fn relink(
    connection: &Connection,
    job: JobNo,
    left: &[RunLink],
    rest: Option<RunLink>,
) -> Answer<()> {
    connection.run(sql!("set_job_head"), &[&job, &left.first().copied().or(rest)])?;
    for (nth, run) in left.iter().enumerate() {
        let prev = left.get(nth + 1).copied().or(rest);
        connection.run(sql!("purge_relink"), &[&job, &run.scheduled_at, &run.sequence, &prev])?;
    }
    Ok(())
}
