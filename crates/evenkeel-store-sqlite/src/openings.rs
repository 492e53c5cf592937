//! When what waits may be claimed, what is before it, and how much is to come.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use evenkeel_core::limit::{Limit, LimitKey};
use evenkeel_core::{Definition, JobId, JobNo, RunKey, Shard, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{
    ClosedAttempt, Opening, Postpone, SlotLoad, StoreError, WaitingAttempt, WaitsFor, sql_time,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Answer;
use crate::rows::{json, key_from, key_params, micros, name_list, priority_from};

/// So many places of a pool are looked at,
const LOOKED_AT_MAX: i64 = 10_000;
/// so many of them are counted as before an attempt,
const COUNTED_MAX: i64 = 1_000;
/// and so many attempts of a job are told.
const TOLD_MAX: usize = 100;

/// Shards as a statement takes them.
pub(crate) fn shard_list(shards: &[Shard]) -> Result<String, StoreError> {
    json(&shards.iter().map(|shard| shard.0).collect::<Vec<_>>())
}

pub(crate) fn closed(
    connection: &Connection,
    shards: &[Shard],
    limit: u32,
    now: Timestamp,
) -> Answer<Vec<ClosedAttempt>> {
    let mut statement = connection.prepare_cached(include_str!("../queries/closed.sql"))?;
    let mut rows = statement.query(params![now.as_micros(), shard_list(shards)?, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let average: Option<i64> = row.get("average_us")?;
        found.push(ClosedAttempt {
            key: key_from(row)?,
            average_good_duration: average.map(|micros| Span::from_micros(micros.unsigned_abs())),
            definition: row.get("definition")?,
        });
    }
    Ok(found)
}

pub(crate) fn reopen(connection: &Connection, batch: &[(RunKey, Opening)]) -> Answer<()> {
    let mut statement = connection.prepare_cached(include_str!("../queries/reopen.sql"))?;
    for (key, opening) in batch {
        let (scheduled_at, job_no, sequence, attempt) = key_params(*key);
        statement.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            micros(opening.from),
            micros(opening.until),
        ])?;
    }
    Ok(())
}

/// What waits of a job in the queue may be claimed when and where its definition says.
pub(crate) fn open_anew(
    connection: &Connection,
    job: JobNo,
    definition: &Definition,
    seen: Option<Span>,
    now: Timestamp,
) -> Answer<()> {
    let opening = Opening::of(definition, definition.average(seen), now);
    let limit = definition.key_limit();
    connection.prepare_cached(include_str!("../queries/order_open_ready.sql"))?.execute(
        params![
            job.0,
            micros(opening.from),
            micros(opening.until),
            name_list(&definition.dont_run_on_nodes)?,
            definition.priority.get(),
            limit.as_ref().map(|limit| limit.digest.as_bytes()),
            limit.map(|limit| limit.most),
        ],
    )?;
    Ok(())
}

pub(crate) fn postpone(connection: &Connection, batch: &[Postpone]) -> Answer<()> {
    let mut statement = connection.prepare_cached(include_str!("../queries/postpone.sql"))?;
    for Postpone { due, key, until } in batch {
        let (scheduled_at, job_no, sequence, attempt) = key_params(*key);
        statement.execute(params![
            Shard::of(key.job_no).0,
            due.as_micros(),
            scheduled_at,
            job_no,
            sequence,
            attempt,
            until.as_micros(),
        ])?;
    }
    Ok(())
}

pub(crate) fn waiting_of(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
) -> Answer<Vec<WaitingAttempt>> {
    let found: Option<i64> = connection
        .prepare_cached(include_str!("../queries/waiting_of_job.sql"))?
        .query_row(params![tenant.0, job.0.as_bytes().as_slice()], |row| row.get(0))
        .optional()?;
    let Some(no) = found.map(JobNo) else { return Ok(Vec::new()) };
    let mut waiting = wakes_of(connection, no)?;
    waiting.extend(ready_of(connection, tenant, no)?);
    waiting.sort_unstable_by_key(|one| one.key);
    waiting.truncate(TOLD_MAX);
    Ok(waiting)
}

fn wakes_of(connection: &Connection, job: JobNo) -> Answer<Vec<WaitingAttempt>> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/waiting_of_wakes.sql"))?;
    let mut rows = statement.query(params![job.0, TOLD_MAX as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let due = Timestamp::from_micros(row.get("due")?);
        let (key, priority) = (key_from(row)?, priority_from(row)?);
        found.push(WaitingAttempt { key, priority, waits_for: WaitsFor::Time(due) });
    }
    Ok(found)
}

fn ready_of(connection: &Connection, tenant: TenantNo, job: JobNo) -> Answer<Vec<WaitingAttempt>> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/waiting_of_ready.sql"))?;
    let mut rows = statement.query(params![job.0, TOLD_MAX as i64])?;
    let mut fronts: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let given: bool = row.get("own_priority")?;
        let priority = priority_from(row)?.filter(|_| given);
        let pool: String = row.get("pool")?;
        if let Some(waits_for) = waits_for_place(connection, &pool, row)? {
            found.push(WaitingAttempt { key: key_from(row)?, priority, waits_for });
            continue;
        }
        let front = match fronts.entry(pool) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let front = front_of(connection, tenant, new.key())?;
                new.insert(front)
            }
        };
        let place = place_from(row)?;
        let waits_for = WaitsFor::Worker {
            since: Timestamp::from_micros(row.get("since")?),
            ahead: front.partition_point(|other| *other < place) as u32,
            opening: Opening {
                from: sql_time(row.get("open_from")?),
                until: sql_time(row.get("open_until")?),
            },
        };
        found.push(WaitingAttempt { key: key_from(row)?, priority, waits_for });
    }
    Ok(found)
}

/// What it waits for if it is in a waiting room.
fn waits_for_place(connection: &Connection, pool: &str, row: &Row<'_>) -> Answer<Option<WaitsFor>> {
    let Some(key) = LimitKey::of_room(pool) else { return Ok(None) };
    let most: Option<u32> = row.get("parked_max")?;
    let running = connection
        .prepare_cached(include_str!("../queries/unpark_running.sql"))?
        .query_row([key.as_bytes()], |row| row.get(0))?;
    let since = Timestamp::from_micros(row.get("since")?);
    let limit = Limit { key, most: most.unwrap_or_default() };
    Ok(Some(WaitsFor::Place { since, limit, running }))
}

/// A place in a pool's queue, so that the lesser is the earlier.
type Place = [i64; 8];

/// The place that the columns of a row say.
fn place_from(row: &Row<'_>) -> Answer<Place> {
    Ok([
        row.get("lane")?,
        -row.get::<_, i64>("priority")?,
        row.get("should_start_by")?,
        row.get("since")?,
        row.get("job_no")?,
        row.get("scheduled_at")?,
        row.get("sequence")?,
        row.get("attempt")?,
    ])
}

/// What a tenant has at the front of a pool, in the order of dispatch.
fn front_of(connection: &Connection, tenant: TenantNo, pool: &str) -> Answer<Vec<Place>> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/waiting_of_front.sql"))?;
    let mut rows = statement.query(params![pool, tenant.0, LOOKED_AT_MAX, COUNTED_MAX])?;
    let mut front = Vec::new();
    while let Some(row) = rows.next()? {
        front.push(place_from(row)?);
    }
    Ok(front)
}

pub(crate) fn slot_loads(
    connection: &Connection,
    tenant: TenantNo,
    slots: &[Slot],
    limit: u32,
) -> Answer<Vec<SlotLoad>> {
    let mut statement = connection.prepare_cached(include_str!("../queries/slot_loads.sql"))?;
    let mut loads = Vec::with_capacity(slots.len());
    for slot in slots {
        loads.push(statement.query_row(params![tenant.0, slot.0, limit], |row| {
            Ok(SlotLoad { jobs: row.get("jobs")?, counted_all: row.get("counted_all")? })
        })?);
    }
    Ok(loads)
}
