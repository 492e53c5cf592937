//! Claims attempts: moves them from the queue to the history in one transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, TenantNo, Timestamp};
use evenkeel_store::{Claim, Claimed, ClaimedAttempt, Now, StoreError};
use tokio_postgres::Row;

use super::choose::{Candidate, Chosen, choose};
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, get, key_at, micros, time};

struct Args {
    claim: Claim,
    now: Option<i64>,
    contended: Arc<AtomicBool>,
}

pub(super) async fn claim(
    store: &PostgresStore,
    claim: &Claim,
    now: Now,
) -> Result<Claimed, StoreError> {
    let contended = Arc::clone(&store.contended);
    let args = Args { claim: claim.clone(), now: micros(now.literal()), contended };
    store
        .hot
        .run(args, |connection, args| async move {
            let pools = &args.claim.pools;
            let sql = sql!("claim_is_ready");
            let row = connection.row(sql, &[&args.now, pools, &args.claim.node_name]).await?;
            if args.claim.capacity == 0 || !get::<bool>(&row, 1)? {
                return Ok(Claimed { now: time(&row, 0)?, attempts: Vec::new(), again: false });
            }
            let asked_at = time(&row, 0)?;
            connection.transaction(run(&connection, &args, asked_at)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args, asked_at: Timestamp) -> Tried<Claimed> {
    let node = args.claim.node.0;
    let lock = sql!("claim_lock_node");
    if connection.maybe_row(lock, &[&node]).await?.is_none() {
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
    let tenants: Vec<i32> = taken.iter().map(|taken| taken.tenant).collect();
    let fences: Vec<i32> = taken.iter().map(|taken| taken.fence).collect();
    let crashes: Vec<i16> = taken.iter().map(|taken| taken.crashes).collect();
    let prev_at: Vec<Option<i64>> = taken.iter().map(|taken| taken.prev_at).collect();
    let prev_sequence: Vec<Option<i32>> = taken.iter().map(|taken| taken.prev_sequence).collect();
    let priorities: Vec<Option<i16>> = taken
        .iter()
        .map(|taken| taken.own_priority().map(|priority| i16::from(priority.get())))
        .collect();
    connection
        .rows(
            sql!("claim_start"),
            &[
                &args.now, &args.claim.node.0, &keys.job_no, &keys.scheduled_at, &keys.sequence,
                &keys.attempt, &tenants, &fences, &crashes, &prev_at, &prev_sequence, &priorities,
            ],
        )
        .await
}
