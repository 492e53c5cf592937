//! Delayed attempts: retries and triggered runs, each with a separate due time.

use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, AttemptNo, NodeNo, Shard, Timestamp};
use evenkeel_store::{DelayedAttempt, FireDelayed, FireResult, Fired, Postpone, RunLink, Start};
use rusqlite::Connection;

use super::fire::by_job;
use crate::connection::{Params, RunPrepared, RunSql, Session};
use crate::error::Answer;
use crate::rows::{ReadyRow, due_job_from, job_head, key_from, priority_from};

/// Returns the delayed attempts of the shards that are due by `until`, oldest first.
pub(crate) fn due_attempts(
    connection: &Connection,
    shards: &[Shard],
    until: Timestamp,
    limit: u32,
) -> Answer<Vec<DelayedAttempt>> {
    let mut statement = connection.prepare_cached(sql!("look_ahead_delayed"))?;
    let mut found: Vec<(Timestamp, AttemptKey, bool, Option<Priority>)> = Vec::new();
    for shard in shards {
        found.extend(statement.rows(&[shard, &until, &limit], |row| {
            let due = Timestamp::from_micros(row.get("due")?);
            Ok((due, key_from(row)?, row.get("has_checkpoint")?, priority_from(row)?))
        })?);
    }
    found.sort_unstable();
    found.truncate(limit as usize);
    let mut load = connection.prepare_cached(sql!("load_jobs"))?;
    let mut attempts = Vec::with_capacity(found.len());
    for (due, key, has_checkpoint, priority) in found {
        let job = load.maybe_row(&[&key.job_no], due_job_from)?;
        attempts.extend(job.map(|job| DelayedAttempt { due, key, has_checkpoint, priority, job }));
    }
    Ok(attempts)
}

pub(crate) fn fire_delayed(
    session: &mut Session,
    node: NodeNo,
    batch: &[FireDelayed],
    now: Timestamp,
) -> Answer<Fired> {
    let mut results = vec![FireResult::Stale; batch.len()];
    if !session.is_live(node)? {
        return Ok(Fired { now, results });
    }
    for index in by_job(batch, |delayed| delayed.key.job_no) {
        results[index] = fire_one(session, node, &batch[index], now)?;
    }
    let is_claimed = |result: &FireResult| matches!(result, FireResult::Fired(Fence(1..)));
    let claimed = batch.iter().zip(&results).filter(|(_, result)| is_claimed(result));
    let oldest = claimed.map(|(delayed, _)| delayed.key.scheduled_at).min();
    session.lower_watermark(node, oldest)?;
    Ok(Fired { now, results })
}

fn fire_one(
    connection: &Connection,
    node: NodeNo,
    delayed: &FireDelayed,
    now: Timestamp,
) -> Answer<FireResult> {
    let FireDelayed { key, tenant, .. } = *delayed;
    let which: Params<'_> = &[&Shard::of(key.job_no), &delayed.due, &key];
    if delayed.due > now {
        let found = connection.has_row(sql!("fire_delayed_classify"), which)?;
        return Ok(if found { FireResult::Early } else { FireResult::Stale });
    }
    let taken: Option<Option<u8>> = connection.maybe_value(sql!("fire_delayed_take"), which)?;
    let Some(priority) = taken else { return Ok(FireResult::Stale) };
    let prev = link_in(connection, key)?;
    match &delayed.start {
        Start::Claimed => {
            connection.run(sql!("claim_count_execution"), &[&key.job_no])?;
            let attempt: Params<'_> = &[&key, &tenant, &node, &prev, &now, &priority];
            connection.run(sql!("fire_attempt"), attempt)?;
            Ok(FireResult::Fired(Fence::NONE.next()))
        }
        Start::Queued(entry) => {
            let (fence, crashes) = (Fence::NONE, 0);
            ReadyRow { key, tenant, entry, fence, crashes, prev }.insert(connection)?;
            Ok(FireResult::Fired(Fence::NONE))
        }
    }
}

/// Makes the run of a first attempt the newest run of its job, and returns the previous run. For a
/// retry the function changes nothing, because the run is already linked.
pub(crate) fn link_in(connection: &Connection, key: AttemptKey) -> Answer<Option<RunLink>> {
    if key.attempt != AttemptNo::FIRST {
        return Ok(None);
    }
    let before = job_head(connection, key.job_no)?.and_then(|job| job.head);
    connection.run(sql!("set_job_head"), &[&key.job_no, &key.scheduled_at, &key.sequence])?;
    Ok(before)
}

pub(crate) fn postpone(connection: &Connection, batch: &[Postpone]) -> Answer<()> {
    let mut statement = connection.prepare_cached(sql!("postpone"))?;
    for Postpone { due, key, until } in batch {
        statement.run(&[&Shard::of(key.job_no), due, key, until])?;
    }
    Ok(())
}
