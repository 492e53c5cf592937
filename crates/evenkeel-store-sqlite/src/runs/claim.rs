//! Gives waiting attempts to workers.

use evenkeel_core::Timestamp;
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_store::{Claim, Claimed, ClaimedAttempt, Now};
use rusqlite::{Connection, params};

use super::choose::{Candidate, choose};
use crate::clock::resolve;
use crate::error::Answer;
use crate::rows::{key_params, link_columns};
use crate::session::Session;

pub(crate) fn claim(session: &mut Session, claim: &Claim, now: Now) -> Answer<Claimed> {
    let now = resolve(now);
    let mut attempts = Vec::new();
    if !session.is_live(claim.node)? {
        return Ok(Claimed { now, attempts });
    }
    let chosen = choose(session.connection(), claim, now)?;
    for candidate in &chosen {
        attempts.push(start(session.connection(), claim, candidate, now)?);
    }
    if let Some(oldest) = chosen.iter().map(|candidate| candidate.key.scheduled_at).min() {
        session.lower_oldest_open(claim.node, oldest)?;
    }
    Ok(Claimed { now, attempts })
}

fn start(
    connection: &Connection,
    claim: &Claim,
    candidate: &Candidate,
    now: Timestamp,
) -> Answer<ClaimedAttempt> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(candidate.key);
    let fence = candidate.fence.next();
    let given = candidate.own_priority().map(Priority::get);
    connection.prepare_cached(include_str!("../../queries/claim_take.sql"))?.execute(params![
        scheduled_at,
        job_no,
        sequence,
        attempt
    ])?;
    connection
        .prepare_cached(include_str!("../../queries/claim_count_execution.sql"))?
        .execute([job_no])?;
    let restarted = candidate.fence != Fence::NONE
        && connection.prepare_cached(include_str!("../../queries/claim_restart.sql"))?.execute(
            params![
                scheduled_at,
                job_no,
                sequence,
                attempt,
                candidate.crashes,
                fence.0,
                claim.node.0,
                now.as_micros(),
                given,
            ],
        )? == 1;
    if !restarted {
        let (prev_at, prev_sequence) = link_columns(candidate.prev);
        connection.prepare_cached(include_str!("../../queries/claim_start.sql"))?.execute(
            params![
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
            ],
        )?;
    }
    let (definition, checkpoint) = connection
        .prepare_cached(include_str!("../../queries/claim_definition.sql"))?
        .query_row(params![scheduled_at, job_no, sequence], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (key, tenant) = (candidate.key, candidate.tenant);
    let (since, priority) = (candidate.since, candidate.own_priority());
    Ok(ClaimedAttempt { key, fence, tenant, definition, checkpoint, since, priority })
}
