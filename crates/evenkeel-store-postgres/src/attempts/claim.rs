//! Claims attempts: moves them from the queue to the history in one transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};
use evenkeel_store::{Claim, Claimed, ClaimedAttempt};
use tokio_postgres::Row;

use super::choose::{Candidate, Chosen, choose};
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, get, key_at, priority, time};

pub(super) struct Args {
    pub(super) claim: Claim,
    pub(super) now: Option<i64>,
    pub(super) contended: Arc<AtomicBool>,
}

pub(super) async fn claim(connection: &Connection, args: &Args) -> Tried<Claimed> {
    let params: Params<'_> = &[&args.now, &args.claim.pools, &args.claim.node_name];
    let row = connection.row(sql!("claim_is_ready"), params).await?;
    let asked_at = time(&row, 0)?;
    if args.claim.capacity == 0 || !get::<bool>(&row, 1)? {
        return Ok(Claimed { now: asked_at, attempts: Vec::new(), again: false });
    }
    connection.transaction(run(connection, args, asked_at)).await
}

async fn run(connection: &Connection, args: &Args, asked_at: Timestamp) -> Tried<Claimed> {
    if connection.maybe_row(sql!("claim_lock_node"), &[&args.claim.node.0]).await?.is_none() {
        return Ok(Claimed { now: asked_at, attempts: Vec::new(), again: false });
    }
    let peeks = args.contended.load(Ordering::Relaxed);
    let Chosen { taken, again, contended } =
        choose(connection, &args.claim, peeks, args.now, asked_at).await?;
    args.contended.store(contended, Ordering::Relaxed);
    if taken.is_empty() {
        return Ok(Claimed { now: asked_at, attempts: Vec::new(), again });
    }
    let rows = start(connection, args, &taken).await?;
    let now = rows.first().map_or(Ok(asked_at), |row| time(row, 0))?;
    let mut bodies = rows
        .iter()
        .map(|row| Ok((key_at(row, 1)?, (get(row, 5)?, get(row, 6)?))))
        .collect::<Tried<HashMap<AttemptKey, (String, Option<Vec<u8>>)>>>()?;
    let attempts = taken.into_iter().filter_map(|taken| {
        let (definition, checkpoint) = bodies.remove(&taken.key)?;
        Some(ClaimedAttempt {
            key: taken.key,
            fence: Fence(taken.fence.cast_unsigned()).next(),
            tenant: TenantNo(taken.tenant),
            definition,
            checkpoint,
            since: taken.since,
            priority: taken.own_priority(),
            permits: taken.permits,
        })
    });
    Ok(Claimed { now, attempts: attempts.collect(), again })
}

async fn start(connection: &Connection, args: &Args, taken: &[Candidate]) -> Tried<Vec<Row>> {
    let keys: KeyColumns = taken.iter().map(|taken| taken.key).collect();
    let params: Params<'_> = &[
        &args.now,
        &args.claim.node.0,
        &keys.job_no,
        &keys.scheduled_at,
        &keys.sequence,
        &keys.attempt,
        &column(taken, |taken| taken.tenant),
        &column(taken, |taken| taken.fence),
        &column(taken, |taken| taken.crashes),
        &column(taken, |taken| taken.prev_at),
        &column(taken, |taken| taken.prev_sequence),
        &column(taken, |taken| priority(taken.own_priority())),
    ];
    connection.rows(sql!("claim_start"), params).await
}
