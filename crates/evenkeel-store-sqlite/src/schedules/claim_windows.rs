//! Claim windows limit when a queued attempt may be claimed.

use evenkeel_core::{AttemptKey, Definition, JobNo, Shard, Span, Timestamp};
use evenkeel_store::{ClaimWindow, ClosedAttempt, StoreError};
use rusqlite::{Connection, params};

use crate::error::Answer;
use crate::rows::{json, key_from, key_params, micros, name_list};

pub(crate) fn shard_list(shards: &[Shard]) -> Result<String, StoreError> {
    json(&shards.iter().map(|shard| shard.0).collect::<Vec<_>>())
}

pub(crate) fn closed(
    connection: &Connection,
    shards: &[Shard],
    limit: u32,
    now: Timestamp,
) -> Answer<Vec<ClosedAttempt>> {
    let mut statement = connection.prepare_cached(sql!("find_closed_windows"))?;
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

pub(crate) fn reopen(connection: &Connection, batch: &[(AttemptKey, ClaimWindow)]) -> Answer<()> {
    let mut statement = connection.prepare_cached(sql!("set_claim_windows"))?;
    for (key, window) in batch {
        let (scheduled_at, job_no, sequence, attempt) = key_params(*key);
        statement.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            micros(window.from),
            micros(window.until),
        ])?;
    }
    Ok(())
}

/// Updates the claim windows of a job's queued attempts after the definition of the job changed.
pub(crate) fn reopen_job(
    connection: &Connection,
    job: JobNo,
    definition: &Definition,
    average: Option<Span>,
    now: Timestamp,
) -> Answer<()> {
    let window = ClaimWindow::of(definition, definition.average(average), now);
    let limit = definition.key_limit();
    connection.prepare_cached(sql!("command_open_ready"))?.execute(params![
        job.0,
        micros(window.from),
        micros(window.until),
        name_list(&definition.dont_run_on_nodes)?,
        definition.priority.get(),
        limit.as_ref().map(|limit| limit.digest.as_bytes()),
        limit.map(|limit| limit.most),
    ])?;
    Ok(())
}
