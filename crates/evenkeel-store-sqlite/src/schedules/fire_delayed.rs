//! Delayed attempts: retries and triggered runs, each with a separate due time.

use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, AttemptNo, NodeNo, Shard, Timestamp};
use evenkeel_store::{
    DelayedAttempt, FireDelayed, FireResult, Fired, Now, Postpone, RunLink, Start,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::fire::by_job;
use crate::connection::clock::resolve;
use crate::connection::session::Session;
use crate::error::Answer;
use crate::rows::{
    ReadyRow, due_job_from, job_head, key_from, key_params, link_columns, priority_from,
};

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
        let mut rows = statement.query(params![shard.0, until.as_micros(), limit])?;
        while let Some(row) = rows.next()? {
            let due = Timestamp::from_micros(row.get("due")?);
            found.push((due, key_from(row)?, row.get("has_checkpoint")?, priority_from(row)?));
        }
    }
    found.sort_unstable();
    found.truncate(limit as usize);
    let mut load = connection.prepare_cached(sql!("load_jobs"))?;
    let mut attempts = Vec::with_capacity(found.len());
    for (due, key, has_checkpoint, priority) in found {
        if let Some(row) = load.query([key.job_no.0])?.next()? {
            attempts.push(DelayedAttempt {
                due,
                key,
                has_checkpoint,
                priority,
                job: due_job_from(row)?,
            });
        }
    }
    Ok(attempts)
}

pub(crate) fn fire_delayed(
    session: &mut Session,
    node: NodeNo,
    batch: &[FireDelayed],
    now: Now,
) -> Answer<Fired> {
    let now = resolve(now);
    let mut results = vec![FireResult::Stale; batch.len()];
    if !session.is_live(node)? {
        return Ok(Fired { now, results });
    }
    let mut oldest: Option<Timestamp> = None;
    for index in by_job(batch, |delayed| delayed.key.job_no.0) {
        let delayed = &batch[index];
        results[index] = fire_one(session.connection(), node, delayed, now)?;
        if let FireResult::Fired(Fence(1..)) = results[index] {
            let at = delayed.key.scheduled_at;
            oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
        }
    }
    if let Some(oldest) = oldest {
        session.lower_watermark(node, oldest)?;
    }
    Ok(Fired { now, results })
}

fn fire_one(
    connection: &Connection,
    node: NodeNo,
    delayed: &FireDelayed,
    now: Timestamp,
) -> Answer<FireResult> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(delayed.key);
    let shard = Shard::of(delayed.key.job_no).0;
    let which = params![shard, delayed.due.as_micros(), scheduled_at, job_no, sequence, attempt];
    if delayed.due > now {
        let found = connection.prepare_cached(sql!("fire_delayed_classify"))?.exists(which)?;
        return Ok(if found { FireResult::Early } else { FireResult::Stale });
    }
    let taken = connection
        .prepare_cached(sql!("fire_delayed_take"))?
        .query_row(which, |row| row.get::<_, Option<u8>>("priority"))
        .optional()?;
    let Some(priority) = taken else { return Ok(FireResult::Stale) };
    let prev = link_in(connection, delayed.key)?;
    match &delayed.start {
        Start::Claimed => {
            connection.prepare_cached(sql!("claim_count_execution"))?.execute([job_no])?;
            let (prev_at, prev_sequence) = link_columns(prev);
            connection.prepare_cached(sql!("fire_attempt"))?.execute(params![
                scheduled_at,
                job_no,
                sequence,
                attempt,
                delayed.tenant.0,
                node.0,
                prev_at,
                prev_sequence,
                now.as_micros(),
                priority,
            ])?;
            Ok(FireResult::Fired(Fence::NONE.next()))
        }
        Start::Queued(entry) => {
            let (key, tenant) = (delayed.key, delayed.tenant);
            let (fence, crashes) = (Fence::NONE.0, 0);
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
    connection.prepare_cached(sql!("set_job_head"))?.execute(params![
        key.job_no.0,
        key.scheduled_at.as_micros(),
        key.sequence.bits(),
    ])?;
    Ok(before)
}

pub(crate) fn postpone(connection: &Connection, batch: &[Postpone]) -> Answer<()> {
    let mut statement = connection.prepare_cached(sql!("postpone"))?;
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
