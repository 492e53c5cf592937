//! Fires jobs at their scheduled times: checks and updates the row of the job, and adds the attempt
//! or the record of skipped runs.
//!
//! Firing a job costs one update by job number and one insert at the end of the table `attempt`. A
//! batch is processed in the order of job numbers, so that jobs on the same database page are
//! changed together.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, AttemptNo, NodeNo, Sequence, Slot, Timestamp};
use evenkeel_store::{Fire, FireResult, Fired, Now, RunLink, Start, skip_reason_code};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use crate::balance::Counts;
use crate::connection::clock::resolve;
use crate::connection::session::Session;
use crate::error::Answer;
use crate::rows::{ReadyRow, link_columns, micros};

/// The most frequent statements of this module, prepared once per batch.
struct Statements<'c> {
    advance: CachedStatement<'c>,
    advance_slot: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    fn new(connection: &'c Connection) -> Answer<Self> {
        Ok(Self {
            advance: connection.prepare_cached(sql!("fire_advance"))?,
            advance_slot: connection.prepare_cached(sql!("fire_advance_slot"))?,
            attempt: connection.prepare_cached(sql!("fire_attempt"))?,
        })
    }
}

/// Returns the positions of `items` sorted by job; results are returned in the original order.
pub(crate) fn by_job<T>(items: &[T], job: impl Fn(&T) -> i64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    // The sort is stable, so attempts of one job keep their order.
    order.sort_by_key(|index| job(&items[*index]));
    order
}

pub(crate) fn fire(session: &mut Session, node: NodeNo, batch: &[Fire], now: Now) -> Answer<Fired> {
    let now = resolve(now);
    let mut results = vec![FireResult::Stale; batch.len()];
    if !session.is_live(node)? {
        return Ok(Fired { now, results });
    }
    let mut oldest: Option<Timestamp> = None;
    let mut counts = Counts::default();
    let connection = session.connection();
    let mut statements = Statements::new(connection)?;
    for index in by_job(batch, |fire| fire.job.0) {
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
    if let Some(oldest) = oldest {
        session.lower_watermark(node, oldest)?;
    }
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
    let (head_at, head_sequence) = link_columns(start_link.or(skip_link).or(fire.head));
    let (known_at, known_sequence) = link_columns(fire.head);
    let claimed = matches!(fire.start, Some((_, Start::Claimed)));
    let next_slot = fire.next_at.map(Slot::of);
    let same_slot = next_slot == Some(Slot::of(fire.due));
    let advance = if same_slot { &mut statements.advance } else { &mut statements.advance_slot };
    let slot = next_slot.map(|slot| slot.0);
    let values = params![
        fire.job.0,
        fire.generation,
        fire.due.as_micros(),
        fire.idle_only,
        micros(fire.next_at),
        micros(started.max(skipped_to)),
        head_at,
        head_sequence,
        started.is_some(),
        claimed,
        known_at,
        known_sequence,
        slot,
    ];
    // `fire_advance` has no parameter `slot`.
    let count = values.len() - usize::from(same_slot);
    if advance.execute(&values[..count])? == 0 {
        return classify(connection, fire, false);
    }
    if fire.skip.is_some() {
        record_skip(connection, fire, claimed, now)?;
    }
    let prev = skip_link.or(fire.head);
    match &fire.start {
        None => Ok(FireResult::Fired(Fence::NONE)),
        Some((at, Start::Claimed)) => {
            let (prev_at, prev_sequence) = link_columns(prev);
            statements.attempt.execute(params![
                at.as_micros(),
                fire.job.0,
                Sequence::REGULAR.bits(),
                AttemptNo::FIRST.0,
                fire.tenant.0,
                node.0,
                prev_at,
                prev_sequence,
                now.as_micros(),
                None::<u8>,
            ])?;
            Ok(FireResult::Fired(Fence::NONE.next()))
        }
        Some((at, Start::Queued(entry))) => {
            let key = AttemptKey::regular(fire.job, *at);
            let (fence, crashes) = (Fence::NONE.0, 0);
            let row = ReadyRow { key, tenant: fire.tenant, entry, fence, crashes, prev };
            row.insert(connection)?;
            Ok(FireResult::Fired(Fence::NONE))
        }
    }
}

/// Returns why a firing changed nothing. Firings that change nothing are rare, so a second
/// statement is acceptable.
fn classify(connection: &Connection, fire: &Fire, early: bool) -> Answer<FireResult> {
    let (head_at, head_sequence) = link_columns(fire.head);
    let retry_pending = connection
        .prepare_cached(sql!("fire_classify"))?
        .query_row(
            params![fire.job.0, fire.generation, fire.due.as_micros(), head_at, head_sequence],
            |row| row.get(0),
        )
        .optional()?;
    Ok(match retry_pending {
        // The job has changed since the scheduler decided to fire it.
        None => FireResult::Stale,
        Some(_) if early => FireResult::Early,
        Some(retry_pending) => FireResult::Busy { retry_pending },
    })
}

fn record_skip(connection: &Connection, fire: &Fire, claimed: bool, now: Timestamp) -> Answer<()> {
    let Some(skip) = fire.skip else { return Ok(()) };
    let (prev_at, prev_sequence) = link_columns(fire.head);
    connection.prepare_cached(sql!("fire_skip"))?.execute(params![
        skip.from.as_micros(),
        fire.job.0,
        fire.tenant.0,
        prev_at,
        prev_sequence,
        claimed,
        now.as_micros(),
        skip.to.as_micros(),
        i64::try_from(skip.count).unwrap_or(i64::MAX),
        skip_reason_code(skip.reason),
    ])?;
    Ok(())
}
