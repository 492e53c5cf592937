//! Claim windows limit when a queued attempt may be claimed.

use evenkeel_core::{AttemptKey, Definition, JobNo, Shard, Span, Timestamp};
use evenkeel_store::{ClaimWindow, ClosedAttempt, StoreError};
use rusqlite::Connection;

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{json, key_from, name_list, span};

pub(crate) fn shard_list(shards: &[Shard]) -> Result<String, StoreError> {
    json(&shards.iter().map(|shard| shard.0).collect::<Vec<_>>())
}

pub(crate) fn closed(
    connection: &Connection,
    shards: &[Shard],
    limit: u32,
    now: Timestamp,
) -> Answer<Vec<ClosedAttempt>> {
    let shards = shard_list(shards)?;
    connection.rows(sql!("find_closed_windows"), &[&now, &shards, &limit], |row| {
        Ok(ClosedAttempt {
            key: key_from(row)?,
            average_good_duration: span(row.get("average_us")?),
            definition: row.get("definition")?,
        })
    })
}

pub(crate) fn reopen(connection: &Connection, batch: &[(AttemptKey, ClaimWindow)]) -> Answer<()> {
    let mut statement = connection.prepare_cached(sql!("set_claim_windows"))?;
    for (key, window) in batch {
        statement.run(&[key, &window.from, &window.until])?;
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
    let (limit_key, limit_max) = (limit.map(|limit| limit.digest), limit.map(|limit| limit.most));
    let forbidden = name_list(&definition.dont_run_on_nodes)?;
    let values: Params<'_> = &[
        &job, &window.from, &window.until, &forbidden, &definition.priority, &limit_key, &limit_max,
    ];
    connection.run(sql!("command_open_ready"), values)
}
