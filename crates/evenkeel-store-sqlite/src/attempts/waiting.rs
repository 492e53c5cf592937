//! Reads the waiting attempts of a job and counts the attempts that are ahead in the queue.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use evenkeel_core::aging::Rank;
use evenkeel_core::limit::{Limit, LimitKey, LimitScope};
use evenkeel_core::order::Lane;
use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{ClaimWindow, WaitingAttempt, WaitsFor, sql_time};
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::limits::running_under;
use crate::rows::{find_job_no, key_from, priority_from};

/// Number of queued attempts of a pool that are read by priority, and of each lane by waiting time.
const READ_MAX: i64 = 10_000;
/// Attempts ahead in the queue are counted up to this number.
const COUNTED_MAX: usize = 1_000;
/// How many waiting attempts of a job are returned.
const RETURNED_MAX: usize = 100;

/// Returns the waiting attempts of a job. `level` is the rank that an attempt queued at the epoch
/// would have now. Without `level`, the attempts ahead in the queue are not counted.
pub(crate) fn waiting_of(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
    level: Option<Rank>,
) -> Answer<Vec<WaitingAttempt>> {
    let Some(no) = find_job_no(connection, tenant, job)? else { return Ok(Vec::new()) };
    let mut waiting =
        connection.rows(sql!("waiting_of_delayed"), &[&no, &RETURNED_MAX], |row| {
            let due = Timestamp::from_micros(row.get("due")?);
            let (key, priority) = (key_from(row)?, priority_from(row)?);
            Ok(WaitingAttempt { key, priority, waits_for: WaitsFor::Time(due) })
        })?;
    waiting.extend(ready_of(connection, tenant, no, level)?);
    waiting.sort_unstable_by_key(|one| one.key);
    waiting.truncate(RETURNED_MAX);
    Ok(waiting)
}

fn ready_of(
    connection: &Connection,
    tenant: TenantNo,
    job: JobNo,
    level: Option<Rank>,
) -> Answer<Vec<WaitingAttempt>> {
    let mut fronts: BTreeMap<String, Vec<Position>> = BTreeMap::new();
    let mut running: BTreeMap<LimitKey, u32> = BTreeMap::new();
    connection.rows(sql!("waiting_of_ready"), &[&job, &RETURNED_MAX], |row| {
        let is_own: bool = row.get("own_priority")?;
        let (key, priority) = (key_from(row)?, priority_from(row)?.filter(|_| is_own));
        let pool: String = row.get("pool")?;
        let counts = level.is_some();
        if let Some(waits_for) = waits_for_permit(connection, &mut running, &pool, row, counts)? {
            return Ok(WaitingAttempt { key, priority, waits_for });
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
                let position = position_from(row, level)?;
                Some(front.partition_point(|other| *other < position) as u32)
            }
            None => None,
        };
        let waits_for = WaitsFor::Worker {
            since: Timestamp::from_micros(row.get("since")?),
            ahead,
            window: ClaimWindow {
                from: sql_time(row.get("open_from")?),
                until: sql_time(row.get("open_until")?),
            },
        };
        Ok(WaitingAttempt { key, priority, waits_for })
    })
}

/// Returns the limit that an attempt in a limit queue waits for. With `counts` the function also
/// counts the running attempts under the limit, once per limit.
fn waits_for_permit(
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

/// Position of an attempt in the queue of a pool; the attempt with the lower position is claimed
/// earlier.
type Position = [i64; 8];

/// Reads the position of a queued attempt. The rank of a queued attempt is the higher of its
/// priority and the rank it has gained by waiting.
fn position_from(row: &Row<'_>, level: Rank) -> Answer<Position> {
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

/// Returns the queue positions of a tenant's attempts at the front of a pool, in dispatch order.
fn front_of(
    connection: &Connection,
    tenant: TenantNo,
    pool: &str,
    level: Rank,
) -> Answer<Vec<Position>> {
    let read = |row: &Row<'_>| position_from(row, level);
    let mut front =
        connection.rows(sql!("waiting_of_front"), &[&pool, &tenant, &READ_MAX], read)?;
    for lane in Lane::ALL {
        let risen: Params<'_> = &[&pool, &tenant, &READ_MAX, &lane, &level];
        front.extend(connection.rows(sql!("waiting_of_risen"), risen, read)?);
    }
    front.sort_unstable();
    front.dedup();
    front.truncate(COUNTED_MAX);
    Ok(front)
}
