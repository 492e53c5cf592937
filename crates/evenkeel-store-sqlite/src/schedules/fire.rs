//! Fires jobs at their scheduled times: checks and updates the row of the job, and adds the attempt
//! or the record of skipped runs.
//!
//! Firing a job costs one update by job number and one insert at the end of the table `attempt`. A
//! batch is processed in the order of job numbers, so that jobs on the same database page are
//! changed together.

use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, JobNo, NodeNo, Sequence, Slot, Timestamp};
use evenkeel_store::{Fire, FireResult, Fired, RunLink, Start};
use rusqlite::{CachedStatement, Connection};

use crate::balance::Counts;
use crate::connection::{Params, RunPrepared, RunSql, Session};
use crate::error::Answer;
use crate::rows::ReadyRow;

/// The most frequent statements of this module, prepared once per batch.
struct Statements<'c> {
    advance: CachedStatement<'c>,
    advance_slot: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

/// Returns the positions of `items` sorted by job; results are returned in the original order.
pub(crate) fn by_job<T>(items: &[T], job: impl Fn(&T) -> JobNo) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    // The sort is stable, so attempts of one job keep their order.
    order.sort_by_key(|index| job(&items[*index]));
    order
}

pub(crate) fn fire(
    session: &mut Session,
    node: NodeNo,
    batch: &[Fire],
    now: Timestamp,
) -> Answer<Fired> {
    let mut results = vec![FireResult::Stale; batch.len()];
    if !session.is_live(node)? {
        return Ok(Fired { now, results });
    }
    let mut oldest: Option<Timestamp> = None;
    let mut counts = Counts::default();
    let connection: &Connection = session;
    let mut statements = Statements {
        advance: connection.prepare_cached(sql!("fire_advance"))?,
        advance_slot: connection.prepare_cached(sql!("fire_advance_slot"))?,
        attempt: connection.prepare_cached(sql!("fire_attempt"))?,
    };
    for index in by_job(batch, |fire| fire.job) {
        let fire = &batch[index];
        let result = fire_one(connection, &mut statements, node, fire, now)?;
        results[index] = result;
        if let (FireResult::Fired(Fence(1..)), Some((at, _))) = (result, &fire.start) {
            oldest = Some(oldest.map_or(*at, |oldest| oldest.min(*at)));
        }
        // The job has no further run time, so its load is no longer counted.
        if fire.next_at.is_none() && matches!(result, FireResult::Fired(_)) {
            counts.recount(connection, fire.job, None)?;
        }
    }
    drop(statements);
    counts.write(connection)?;
    session.lower_watermark(node, oldest)?;
    Ok(Fired { now, results })
}

fn fire_one(
    connection: &Connection,
    statements: &mut Statements<'_>,
    node: NodeNo,
    fire: &Fire,
    now: Timestamp,
) -> Answer<FireResult> {
    let started = fire.start.as_ref().map(|(at, _)| *at);
    let skipped_to = fire.skip.map(|skip| skip.to);
    if fire.due > now || started.max(skipped_to) > Some(now) {
        return classify(connection, fire, true);
    }
    let skip_link =
        fire.skip.map(|skip| RunLink { scheduled_at: skip.from, sequence: Sequence::REGULAR });
    let start_link = started.map(|at| RunLink { scheduled_at: at, sequence: Sequence::REGULAR });
    let (head, fired_to) = (start_link.or(skip_link).or(fire.head), started.max(skipped_to));
    let (starts, claimed) = (started.is_some(), matches!(fire.start, Some((_, Start::Claimed))));
    let next_slot = fire.next_at.map(Slot::of);
    let same_slot = next_slot == Some(Slot::of(fire.due));
    let advance = if same_slot { &mut statements.advance } else { &mut statements.advance_slot };
    let values: Params<'_> = &[
        &fire.job, &fire.generation, &fire.due, &fire.idle_only, &fire.next_at, &fired_to, &head,
        &starts, &claimed, &fire.head, &next_slot,
    ];
    // `fire_advance` has no parameter `slot`.
    let count = values.len() - usize::from(same_slot);
    if advance.change(&values[..count])? == 0 {
        return classify(connection, fire, false);
    }
    record_skip(connection, fire, claimed, now)?;
    let prev = skip_link.or(fire.head);
    match &fire.start {
        None => Ok(FireResult::Fired(Fence::NONE)),
        Some((at, Start::Claimed)) => {
            let key = AttemptKey::regular(fire.job, *at);
            let own_priority = None::<Priority>;
            statements.attempt.run(&[&key, &fire.tenant, &node, &prev, &now, &own_priority])?;
            Ok(FireResult::Fired(Fence::NONE.next()))
        }
        Some((at, Start::Queued(entry))) => {
            let key = AttemptKey::regular(fire.job, *at);
            let (fence, crashes) = (Fence::NONE, 0);
            let row = ReadyRow { key, tenant: fire.tenant, entry, fence, crashes, prev };
            row.insert(connection)?;
            Ok(FireResult::Fired(Fence::NONE))
        }
    }
}

/// Returns why a firing changed nothing. Firings that change nothing are rare, so a second
/// statement is acceptable.
fn classify(connection: &Connection, fire: &Fire, early: bool) -> Answer<FireResult> {
    let known: Params<'_> = &[&fire.job, &fire.generation, &fire.due, &fire.head];
    let retry_pending = connection.maybe_value(sql!("fire_classify"), known)?;
    Ok(match retry_pending {
        // The job has changed since the scheduler decided to fire it.
        None => FireResult::Stale,
        Some(_) if early => FireResult::Early,
        Some(retry_pending) => FireResult::Busy { retry_pending },
    })
}

fn record_skip(connection: &Connection, fire: &Fire, claimed: bool, now: Timestamp) -> Answer<()> {
    let Some(skip) = fire.skip else { return Ok(()) };
    let values: Params<'_> = &[
        &skip.from, &fire.job, &fire.tenant, &fire.head, &claimed, &now, &skip.to, &skip.count,
        &skip.reason,
    ];
    connection.run(sql!("fire_skip"), values)
}
