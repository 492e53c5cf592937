//! Claims queued attempts for a worker.

use evenkeel_core::Timestamp;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::LimitKey;
use evenkeel_store::{Claim, Claimed, ClaimedAttempt};
use rusqlite::Connection;

use super::choose::{Candidate, choose, front};
use super::permits::Permits;
use crate::connection::{Params, RunSql, Session};
use crate::error::Answer;

/// How many times a claim chooses further attempts to replace attempts that got no permit.
const ROUNDS: usize = 3;
/// How many attempts of each lane are checked for full concurrency limits between two rounds of a
/// claim.
const CLEARED: usize = 1_000;

pub(crate) fn claim(session: &mut Session, claim: &Claim, now: Timestamp) -> Answer<Claimed> {
    if !session.is_live(claim.node)? {
        return Ok(Claimed { now, attempts: Vec::new(), again: false });
    }
    let connection: &Connection = session;
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
    let oldest = claimed.attempts.iter().map(|attempt| attempt.key.scheduled_at).min();
    session.lower_watermark(claim.node, oldest)?;
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
    let Candidate { key, tenant, crashes, prev, since, .. } = *candidate;
    let (fence, node, priority) = (candidate.fence.next(), claim.node, candidate.own_priority());
    connection.run(sql!("claim_take"), &[&key])?;
    connection.run(sql!("claim_count_execution"), &[&key.job_no])?;
    let restart: Params<'_> = &[&key, &crashes, &fence, &node, &now, &priority];
    let restarted =
        candidate.fence != Fence::NONE && connection.change(sql!("claim_restart"), restart)? == 1;
    if !restarted {
        let start: Params<'_> = &[&key, &tenant, &crashes, &fence, &node, &prev, &now, &priority];
        connection.run(sql!("claim_start"), start)?;
    }
    let run: Params<'_> = &[&key.scheduled_at, &key.job_no, &key.sequence];
    let (definition, checkpoint) =
        connection.row(sql!("claim_definition"), run, |row| Ok(row.try_into()?))?;
    Ok(ClaimedAttempt { key, fence, tenant, definition, checkpoint, since, priority, permits })
}
