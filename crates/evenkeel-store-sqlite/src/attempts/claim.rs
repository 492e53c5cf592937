//! Claims queued attempts for a worker.

use evenkeel_core::Timestamp;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::LimitKey;
use evenkeel_core::order::Priority;
use evenkeel_store::{Claim, Claimed, ClaimedAttempt, Now};
use rusqlite::{Connection, params};

use super::choose::{Candidate, choose, front};
use super::permits::Permits;
use crate::connection::clock::resolve;
use crate::connection::session::Session;
use crate::error::Answer;
use crate::rows::{key_params, link_columns};

/// How many times a claim chooses further attempts to replace attempts that got no permit.
const ROUNDS: usize = 3;
/// How many attempts of each lane are checked for full concurrency limits between two rounds of a
/// claim.
const CLEARED: usize = 1_000;

pub(crate) fn claim(session: &mut Session, claim: &Claim, now: Now) -> Answer<Claimed> {
    let now = resolve(now);
    if !session.is_live(claim.node)? {
        return Ok(Claimed { now, attempts: Vec::new(), again: false });
    }
    let connection = session.connection();
    let chosen = choose(connection, claim, now)?;
    let is_limited = |candidate: &Candidate| {
        candidate.limit.is_some() || claim.limits.apply_to(candidate.tenant, candidate.lane)
    };
    let claimed = if chosen.iter().any(is_limited) {
        start_within_limits(connection, claim, chosen, now)?
    } else {
        let started =
            chosen.iter().map(|candidate| start(connection, claim, candidate, Vec::new(), now));
        Claimed { now, attempts: started.collect::<Answer<_>>()?, again: false }
    };
    if let Some(oldest) = claimed.attempts.iter().map(|attempt| attempt.key.scheduled_at).min() {
        session.lower_watermark(claim.node, oldest)?;
    }
    Ok(claimed)
}

/// Starts the attempts that get permits of their concurrency limits. Attempts that get no permit
/// are replaced by other attempts.
fn start_within_limits(
    connection: &Connection,
    claim: &Claim,
    chosen: Vec<Candidate>,
    now: Timestamp,
) -> Answer<Claimed> {
    let mut permits = Permits::new(connection, &claim.limits);
    let mut left = claim.clone();
    let mut started = Vec::new();
    let mut chosen = chosen;
    for _ in 0..ROUNDS {
        let chosen_count = chosen.len();
        let before = started.len();
        for candidate in chosen {
            if let Some(keys) = permits.admit(&candidate)? {
                let attempt = start(connection, claim, &candidate, keys, now)?;
                let lane = candidate.lane as usize;
                left.guaranteed[lane] = left.guaranteed[lane].saturating_sub(1);
                started.push((candidate, attempt));
            }
        }
        left.capacity = claim.capacity - started.len();
        if started.len() - before == chosen_count || left.capacity == 0 {
            return Ok(in_order(started, now, false));
        }
        // Attempts that can start may be queued behind many attempts without a permit.
        permits.clear(&front(connection, &left, CLEARED, now)?)?;
        chosen = choose(connection, &left, now)?;
    }
    Ok(in_order(started, now, !chosen.is_empty()))
}

fn in_order(mut started: Vec<(Candidate, ClaimedAttempt)>, now: Timestamp, again: bool) -> Claimed {
    started.sort_unstable_by_key(|(candidate, _)| (candidate.lane, candidate.by_rank()));
    let attempts = started.into_iter().map(|(_, attempt)| attempt).collect();
    Claimed { now, attempts, again }
}

fn start(
    connection: &Connection,
    claim: &Claim,
    candidate: &Candidate,
    permits: Vec<LimitKey>,
    now: Timestamp,
) -> Answer<ClaimedAttempt> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(candidate.key);
    let fence = candidate.fence.next();
    let given = candidate.own_priority().map(Priority::get);
    connection.prepare_cached(sql!("claim_take"))?.execute(key_params(candidate.key))?;
    connection.prepare_cached(sql!("claim_count_execution"))?.execute([job_no])?;
    let restarted = candidate.fence != Fence::NONE
        && connection.prepare_cached(sql!("claim_restart"))?.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            candidate.crashes,
            fence.0,
            claim.node.0,
            now.as_micros(),
            given,
        ])? == 1;
    if !restarted {
        let (prev_at, prev_sequence) = link_columns(candidate.prev);
        connection.prepare_cached(sql!("claim_start"))?.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            candidate.tenant.0,
            candidate.crashes,
            fence.0,
            claim.node.0,
            prev_at,
            prev_sequence,
            now.as_micros(),
            given,
        ])?;
    }
    let (definition, checkpoint) = connection
        .prepare_cached(sql!("claim_definition"))?
        .query_row(params![scheduled_at, job_no, sequence], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (key, tenant) = (candidate.key, candidate.tenant);
    let (since, priority) = (candidate.since, candidate.own_priority());
    Ok(ClaimedAttempt { key, fence, tenant, definition, checkpoint, since, priority, permits })
}
