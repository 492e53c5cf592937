//! Reads the start times of jobs, and moves jobs to other start times.

use std::collections::HashMap;

use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{MoveBatch, Moved, Now, sql_time};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::load_profiles::Counts;
use crate::connection::clock::resolve;
use crate::error::Answer;
use crate::jobs::register::notify_scheduler;
use crate::rows::{collect, job_id};
use crate::schedules::fire::by_job;

pub(super) fn placements(
    db: &Connection,
    tenant: TenantNo,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<Vec<Placement>> {
    let mut statement = db.prepare_cached(sql!("placements"))?;
    let after = after.map_or(i64::MIN, |job| job.0);
    collect(statement.query(params![tenant.0, after, limit])?, placement_from)
}

pub(super) fn placements_of(
    db: &Connection,
    tenant: TenantNo,
    jobs: &[JobNo],
) -> Answer<Vec<Placement>> {
    let mut statement = db.prepare_cached(sql!("placements_of"))?;
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        let mut rows = statement.query(params![tenant.0, job.0])?;
        if let Some(row) = rows.next()? {
            found.push(placement_from(row)?);
        }
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
        cost: Span::from_micros(row.get::<_, i64>(8)?.unsigned_abs()),
    })
}

pub(super) fn move_jobs(
    connection: &Connection,
    tenant: TenantNo,
    batch: &MoveBatch,
    now: Now,
) -> Answer<Moved> {
    let now = resolve(now);
    let profiles: HashMap<LoadProfileKey, &str> =
        batch.profiles.iter().map(|(key, profile)| (*key, profile.as_str())).collect();
    let rebalance: Option<i64> = connection
        .prepare_cached(sql!("move_jobs_is_running"))?
        .query_row(params![tenant.0, batch.rebalance.as_bytes(), batch.part], |row| row.get(0))
        .optional()?;
    let Some(rebalance) = rebalance else { return Ok(Moved::Stopped) };
    let made = move_each(connection, tenant, batch, &profiles, now)?;
    let moved = made.iter().filter(|made| **made).count();
    connection.prepare_cached(sql!("move_jobs_done"))?.execute(params![
        rebalance,
        now.as_micros(),
        moved as i64,
        (made.len() - moved) as i64
    ])?;
    let bytes: Vec<u8> = made.iter().map(|made| u8::from(*made)).collect();
    connection
        .prepare_cached(sql!("move_jobs_made"))?
        .execute(params![rebalance, batch.part, bytes])?;
    Ok(Moved::Done(made))
}

fn move_each(
    connection: &Connection,
    tenant: TenantNo,
    batch: &MoveBatch,
    profiles: &HashMap<LoadProfileKey, &str>,
    now: Timestamp,
) -> Answer<Vec<bool>> {
    let mut find = connection.prepare_cached(sql!("move_jobs_find"))?;
    let mut update = connection.prepare_cached(sql!("move_jobs"))?;
    let mut counts = Counts::default();
    let mut made = vec![false; batch.moves.len()];
    for index in by_job(&batch.moves, |to| to.job.0) {
        let to = &batch.moves[index];
        let Some(text) = profiles.get(&to.profile).copied() else { continue };
        // A run that is already due is not moved, because the scheduler is about to fire it.
        if to.new_at <= now || to.old_at <= now {
            continue;
        }
        let new_at = to.new_at.as_micros();
        let which = params![
            to.job.0,
            tenant.0,
            to.generation,
            to.old_at.as_micros(),
            batch.even_live,
            new_at
        ];
        let found: Option<(i64, i64)> =
            find.query_row(which, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((old, cost)) = found else { continue };
        let slot = Slot::of(to.new_at).0;
        update.execute(params![to.job.0, new_at, slot, now.as_micros(), to.profile.0])?;
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
