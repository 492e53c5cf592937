//! When what waits may be claimed, what is before it, and how much is to come.

use evenkeel_core::{JobId, JobNo, RunKey, Shard, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{ClosedAttempt, Opening, StoreError, WaitingAttempt, WaitsFor, sql_time};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Answer;
use crate::rows::{json, key_from, key_params, micros};

/// So many places before an attempt are counted,
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
    waiting.extend(ready_of(connection, no)?);
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
        found.push(WaitingAttempt { key: key_from(row)?, waits_for: WaitsFor::Time(due) });
    }
    Ok(found)
}

fn ready_of(connection: &Connection, job: JobNo) -> Answer<Vec<WaitingAttempt>> {
    let mut statement =
        connection.prepare_cached(include_str!("../queries/waiting_of_ready.sql"))?;
    let mut rows = statement.query(params![job.0, TOLD_MAX as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let key = key_from(row)?;
        let waits_for = WaitsFor::Worker {
            since: Timestamp::from_micros(row.get("ready_at")?),
            ahead: ahead_of(connection, key, row)?,
            opening: Opening {
                from: sql_time(row.get("open_from")?),
                until: sql_time(row.get("open_until")?),
            },
        };
        found.push(WaitingAttempt { key, waits_for });
    }
    Ok(found)
}

/// How many of its pool are before an attempt, by the columns of its row.
fn ahead_of(connection: &Connection, key: RunKey, row: &Row<'_>) -> Answer<u32> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let place = params![
        row.get::<_, String>("pool")?,
        row.get::<_, u8>("lane")?,
        row.get::<_, u8>("priority")?,
        row.get::<_, i64>("should_start_by")?,
        row.get::<_, i64>("ready_at")?,
        job_no,
        scheduled_at,
        sequence,
        attempt,
        COUNTED_MAX,
    ];
    let mut statement =
        connection.prepare_cached(include_str!("../queries/waiting_of_ahead.sql"))?;
    Ok(statement.query_row(place, |row| row.get(0))?)
}

pub(crate) fn slot_loads(
    connection: &Connection,
    tenant: TenantNo,
    slots: &[Slot],
    limit: u32,
) -> Answer<Vec<u32>> {
    let mut statement = connection.prepare_cached(include_str!("../queries/slot_loads.sql"))?;
    let mut loads = Vec::with_capacity(slots.len());
    for slot in slots {
        loads.push(statement.query_row(params![tenant.0, slot.0, limit], |row| row.get(0))?);
    }
    Ok(loads)
}
