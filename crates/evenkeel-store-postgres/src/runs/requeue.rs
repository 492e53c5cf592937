//! Back into the queue.

use std::collections::HashSet;

use evenkeel_core::{NodeNo, RunKey};
use evenkeel_store::{Now, Requeue, StoreError};

use crate::PostgresStore;
use crate::columns::{KeyColumns, TicketColumns, fence, key, micros};
use crate::error::Tried;
use crate::pool::Connection;

pub(super) async fn requeue(
    store: &PostgresStore,
    node: NodeNo,
    batch: Vec<Requeue>,
    now: Now,
) -> Result<Vec<bool>, StoreError> {
    let args = (node.0, batch, micros(now.literal()));
    store
        .hot
        .run(args, |connection, args| async move {
            let (node, batch, now) = &*args;
            run(&connection, *node, batch, *now).await
        })
        .await
}

/// Says which of the batch went back.
pub(super) async fn run(
    connection: &Connection,
    node: i32,
    batch: &[Requeue],
    now: Option<i64>,
) -> Tried<Vec<bool>> {
    let mut sorted: Vec<&Requeue> = batch.iter().collect();
    sorted.sort_unstable_by_key(|requeue| (requeue.key.job_no, requeue.key));
    let keys: KeyColumns = sorted.iter().map(|requeue| requeue.key).collect();
    let fences: Vec<i32> = sorted.iter().map(|requeue| fence(requeue.fence)).collect();
    let crashed: Vec<bool> = sorted.iter().map(|requeue| requeue.crashed).collect();
    let mut tickets = TicketColumns::default();
    sorted.iter().for_each(|requeue| tickets.push(Some(&requeue.ticket)));
    let rows = connection
        .rows(
            include_str!("../../queries/requeue.sql"),
            &[
                &now,
                &node,
                &keys.job_no,
                &keys.scheduled_at,
                &keys.sequence,
                &keys.attempt,
                &fences,
                &crashed,
                &tickets.pool,
                &tickets.lane,
                &tickets.priority,
                &tickets.should_start_by,
                &tickets.limit_key,
                &tickets.open_from,
                &tickets.open_until,
                &tickets.forbidden_nodes,
                &tickets.own_priority,
                &tickets.since,
                &tickets.rise,
                &tickets.limit_max,
            ],
        )
        .await?;
    let requeued = rows.iter().map(|row| Ok(key(row, 0)?)).collect::<Tried<HashSet<RunKey>>>()?;
    Ok(batch.iter().map(|requeue| requeued.contains(&requeue.key)).collect())
}
