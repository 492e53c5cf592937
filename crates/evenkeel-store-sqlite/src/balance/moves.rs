//! Reads the start times of jobs, and moves jobs to other start times.

use std::collections::HashMap;

use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{MoveBatch, Moved, sql_time};
use rusqlite::{Connection, Row};

use super::load_profiles::Counts;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::jobs::register::notify_scheduler;
use crate::rows::{count, job_id};
use crate::schedules::fire::by_job;

pub(super) fn placements(
    db: &Connection,
    tenant: TenantNo,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<Vec<Placement>> {
    let after = after.unwrap_or(JobNo(i64::MIN));
    db.rows(sql!("placements"), &[&tenant, &after, &limit], placement_from)
}

pub(super) fn placements_of(
    db: &Connection,
    tenant: TenantNo,
    jobs: &[JobNo],
) -> Answer<Vec<Placement>> {
    let mut statement = db.prepare_cached(sql!("placements_of"))?;
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        found.extend(statement.maybe_row(&[&tenant, job], placement_from)?);
    }
    Ok(found)
}

/// A rebalance plan reads every job, so columns are read by position, which is faster than by name.
/// The columns are in the order of the SQL fragment `placement_columns`.
fn placement_from(row: &Row<'_>) -> Answer<Placement> {
    let live: i64 = row.get(6)?;
    Ok(Placement {
        job: JobNo(row.get(0)?),
        seed: job_id(row.get(1)?)?.seed(),
        generation: row.get(2)?,
        next_at: Timestamp::from_micros(row.get(3)?),
        last_fired_at: sql_time(row.get(4)?),
        placed_at: Timestamp::from_micros(row.get(5)?),
        is_live: live > 0,
        profile: Some(row.get(7)?).filter(|key| *key != 0).map(LoadProfileKey),
        cost: Span::from_micros(count(row, 8)?),
    })
}

pub(super) fn move_jobs(
    connection: &Connection,
    tenant: TenantNo,
    batch: &MoveBatch,
    now: Timestamp,
) -> Answer<Moved> {
    let part: Params<'_> = &[&tenant, &batch.rebalance, &batch.part];
    let rebalance: Option<i64> = connection.maybe_value(sql!("move_jobs_is_running"), part)?;
    let Some(rebalance) = rebalance else { return Ok(Moved::Stopped) };
    let made = move_each(connection, tenant, batch, now)?;
    let moved = made.iter().filter(|made| **made).count();
    let changed = made.len() - moved;
    connection.run(sql!("move_jobs_done"), &[&rebalance, &now, &moved, &changed])?;
    let bytes: Vec<u8> = made.iter().map(|made| u8::from(*made)).collect();
    connection.run(sql!("move_jobs_made"), &[&rebalance, &batch.part, &bytes])?;
    Ok(Moved::Done(made))
}

fn move_each(
    connection: &Connection,
    tenant: TenantNo,
    batch: &MoveBatch,
    now: Timestamp,
) -> Answer<Vec<bool>> {
    let profiles: HashMap<LoadProfileKey, &str> =
        batch.profiles.iter().map(|(key, profile)| (*key, profile.as_str())).collect();
    let mut find = connection.prepare_cached(sql!("move_jobs_find"))?;
    let mut update = connection.prepare_cached(sql!("move_jobs"))?;
    let mut counts = Counts::default();
    let mut made = vec![false; batch.moves.len()];
    for index in by_job(&batch.moves, |to| to.job) {
        let to = &batch.moves[index];
        let Some(text) = profiles.get(&to.profile).copied() else { continue };
        // A run that is already due is not moved, because the scheduler is about to fire it.
        if to.new_at <= now || to.old_at <= now {
            continue;
        }
        let which: Params<'_> =
            &[&to.job, &tenant, &to.generation, &to.old_at, &batch.even_live, &to.new_at];
        let found: Option<(i64, i64)> = find.maybe_row(which, |row| Ok(row.try_into()?))?;
        let Some((old, cost)) = found else { continue };
        update.run(&[&to.job, &to.new_at, &Slot::of(to.new_at), &now, &to.profile])?;
        if old != 0 {
            counts.remove_job(tenant.0, old, cost);
            counts.add_job(tenant.0, to.profile.0, cost, text);
        }
        notify_scheduler(connection, to.job, Some(to.new_at), now)?;
        made[index] = true;
    }
    counts.write(connection)?;
    Ok(made)
}
