//! Gives waiting attempts to workers.

use std::cmp::Reverse;

use evenkeel_core::lease::Fence;
use evenkeel_core::order::Lane;
use evenkeel_core::{RunKey, TenantNo, Timestamp};
use evenkeel_store::{Claim, Claimed, ClaimedAttempt, Now, RunLink};
use rusqlite::{Connection, Row, params};

use crate::clock::resolve;
use crate::error::Answer;
use crate::rows::{key_from, key_params, link, link_columns};
use crate::session::Session;

/// An attempt that could be given out.
struct Candidate {
    priority: Reverse<u8>,
    should_start_by: i64,
    ready_at: i64,
    key: RunKey,
    tenant: TenantNo,
    fence: Fence,
    crashes: u16,
    prev: Option<RunLink>,
}

impl Candidate {
    fn from_row(row: &Row<'_>) -> Answer<Self> {
        Ok(Self {
            priority: Reverse(row.get("priority")?),
            should_start_by: row.get("should_start_by")?,
            ready_at: row.get("ready_at")?,
            key: key_from(row)?,
            tenant: TenantNo(row.get("tenant_no")?),
            fence: Fence(row.get("fence")?),
            crashes: row.get("crashes")?,
            prev: link(row.get("prev_at")?, row.get("prev_sequence")?),
        })
    }
}

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

/// Every lane first gets its guaranteed places, then the lanes in order what is left.
fn choose(connection: &Connection, claim: &Claim, now: Timestamp) -> Answer<Vec<Candidate>> {
    let mut pools: Vec<&str> = claim.pools.iter().map(String::as_str).collect();
    pools.sort_unstable();
    pools.dedup();
    let mut lanes = Vec::with_capacity(Lane::ALL.len());
    for lane in Lane::ALL {
        lanes.push(first_of_lane(connection, &pools, lane, claim, now)?);
    }
    let mut left = claim.room;
    let mut shares = [0; Lane::ALL.len()];
    for (lane, waiting) in lanes.iter().enumerate() {
        shares[lane] = claim.guaranteed[lane].min(waiting.len()).min(left);
        left -= shares[lane];
    }
    for (lane, waiting) in lanes.iter().enumerate() {
        let more = (waiting.len() - shares[lane]).min(left);
        shares[lane] += more;
        left -= more;
    }
    let shared = lanes.into_iter().zip(shares);
    Ok(shared.flat_map(|(waiting, share)| waiting.into_iter().take(share)).collect())
}

fn first_of_lane(
    connection: &Connection,
    pools: &[&str],
    lane: Lane,
    claim: &Claim,
    now: Timestamp,
) -> Answer<Vec<Candidate>> {
    let mut statement =
        connection.prepare_cached(include_str!("../../queries/claim_candidates.sql"))?;
    let limit = i64::try_from(claim.room).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    for pool in pools {
        let wanted = params![pool, lane as u8, limit, now.as_micros(), claim.node_name];
        let mut rows = statement.query(wanted)?;
        while let Some(row) = rows.next()? {
            found.push(Candidate::from_row(row)?);
        }
    }
    // Each pool comes in order; several must be merged.
    found.sort_by_key(|it| (it.priority, it.should_start_by, it.ready_at, it.key.job_no, it.key));
    Ok(found)
}

fn start(
    connection: &Connection,
    claim: &Claim,
    candidate: &Candidate,
    now: Timestamp,
) -> Answer<ClaimedAttempt> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(candidate.key);
    let fence = candidate.fence.next();
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
            ],
        )?;
    }
    let (definition, checkpoint) = connection
        .prepare_cached(include_str!("../../queries/claim_definition.sql"))?
        .query_row(params![scheduled_at, job_no, sequence], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (key, tenant) = (candidate.key, candidate.tenant);
    let since = Timestamp::from_micros(candidate.ready_at);
    Ok(ClaimedAttempt { key, fence, tenant, definition, checkpoint, since })
}
