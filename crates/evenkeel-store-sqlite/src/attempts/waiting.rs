//! What waits of a job, and what is before it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::aging::Rank;
use evenkeel_core::limit::{Limit, LimitKey, LimitScope};
use evenkeel_core::order::Lane;
use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{ClaimWindow, WaitingAttempt, WaitsFor, sql_time};
use rusqlite::{Connection, Row, params};

use crate::error::Answer;
use crate::limits::running_under;
use crate::rows::{find_job_no, key_from, priority_from};

/// So many places of a pool are looked at,
const LOOKED_AT_MAX: i64 = 10_000;
/// so many of them are counted as before an attempt,
const COUNTED_MAX: usize = 1_000;
/// and so many attempts of a job are told.
const TOLD_MAX: usize = 100;

/// What waits of a job. Whoever began to wait at the epoch ranks at `level` now; without that, nobody
/// asks what is before them.
pub(crate) fn waiting_of(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
    level: Option<Rank>,
) -> Answer<Vec<WaitingAttempt>> {
    let Some(no) = find_job_no(connection, tenant, job)? else { return Ok(Vec::new()) };
    let mut waiting = wakes_of(connection, no)?;
    waiting.extend(ready_of(connection, tenant, no, level)?);
    waiting.sort_unstable_by_key(|one| one.key);
    waiting.truncate(TOLD_MAX);
    Ok(waiting)
}

fn wakes_of(connection: &Connection, job: JobNo) -> Answer<Vec<WaitingAttempt>> {
    let mut statement = connection.prepare_cached(sql!("waiting_of_delayed"))?;
    let mut rows = statement.query(params![job.0, TOLD_MAX as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let due = Timestamp::from_micros(row.get("due")?);
        let (key, priority) = (key_from(row)?, priority_from(row)?);
        found.push(WaitingAttempt { key, priority, waits_for: WaitsFor::Time(due) });
    }
    Ok(found)
}

fn ready_of(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    level: Option<Rank>,
) -> Answer<Vec<WaitingAttempt>> {
    let mut statement = connection.prepare_cached(sql!("waiting_of_ready"))?;
    let mut rows = statement.query(params![job.0, TOLD_MAX as i64])?;
    let mut fronts: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let mut running: BTreeMap<LimitKey, u32> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let given: bool = row.get("own_priority")?;
        let priority = priority_from(row)?.filter(|_| given);
        let pool: String = row.get("pool")?;
        let counts = level.is_some();
        if let Some(waits_for) = waits_for_place(connection, &mut running, &pool, row, counts)? {
            found.push(WaitingAttempt { key: key_from(row)?, priority, waits_for });
            continue;
        }
        let ahead = match level {
            Some(level) => {
                let front = match fronts.entry(pool) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let front = front_of(connection, tenant, new.key(), level)?;
                        new.insert(front)
                    }
                };
                let place = place_from(row, level)?;
                Some(front.partition_point(|other| *other < place) as u32)
            }
            None => None,
        };
        let waits_for = WaitsFor::Worker {
            since: Timestamp::from_micros(row.get("since")?),
            ahead,
            opening: ClaimWindow {
                from: sql_time(row.get("open_from")?),
                until: sql_time(row.get("open_until")?),
            },
        };
        found.push(WaitingAttempt { key: key_from(row)?, priority, waits_for });
    }
    Ok(found)
}

/// What it waits for if it is in a waiting room, and how many have a place if they are to be counted:
/// once for all of a room.
fn waits_for_place(
    connection: &Connection,
    running: &mut BTreeMap<LimitKey, u32>,
    pool: &str,
    row: &Row<'_>,
    counts: bool,
) -> Answer<Option<WaitsFor>> {
    let Some(key) = LimitKey::of_queue_pool(pool) else { return Ok(None) };
    let most: Option<u32> = row.get("limited_by_max")?;
    let running = if counts && key.scope() != LimitScope::Lane {
        Some(match running.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(running_under(connection, key)?),
        })
    } else {
        None
    };
    let since = Timestamp::from_micros(row.get("since")?);
    let limit = Limit { key, most: most.unwrap_or_default() };
    Ok(Some(WaitsFor::Permit { since, limit, running }))
}

/// A place in a pool's queue, so that the lesser is the earlier.
type Place = [i64; 8];

/// The place that the columns of a row say: what it ranks at is the higher of its priority and of
/// what its waiting makes of it.
fn place_from(row: &Row<'_>, level: Rank) -> Answer<Place> {
    let (priority, rise): (i64, i64) = (row.get("priority")?, row.get("rise")?);
    Ok([
        row.get("lane")?,
        -priority.max(level.0 - rise),
        row.get("should_start_by")?,
        row.get("since")?,
        row.get("job_no")?,
        row.get("scheduled_at")?,
        row.get("sequence")?,
        row.get("attempt")?,
    ])
}

/// What a tenant has at the front of a pool, in the order of dispatch.
fn front_of(
    connection: &Connection,
    tenant: TenantNo,
    pool: &str,
    level: Rank,
) -> Answer<Vec<Place>> {
    let mut statement = connection.prepare_cached(sql!("waiting_of_front"))?;
    let mut rows = statement.query(params![pool, tenant.0, LOOKED_AT_MAX])?;
    let mut front = BTreeSet::new();
    while let Some(row) = rows.next()? {
        front.insert(place_from(row, level)?);
    }
    let mut statement = connection.prepare_cached(sql!("waiting_of_risen"))?;
    for lane in Lane::ALL {
        let asked = params![pool, tenant.0, LOOKED_AT_MAX, lane as u8, level.0];
        let mut rows = statement.query(asked)?;
        while let Some(row) = rows.next()? {
            front.insert(place_from(row, level)?);
        }
    }
    Ok(front.into_iter().take(COUNTED_MAX).collect())
}
