//! Takes attempts from their node: back into the queue, or as failed.

use std::collections::HashSet;

use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{AfterLoss, FinishResult, Now, QueueEntry, Requeue, StoreError};

use super::finish::{LostEnd, fail_lost};
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, TicketColumns, fence, key, micros};

pub(super) async fn requeue(
    store: &PostgresStore,
    node: NodeNo,
    batch: Vec<Requeue>,
    now: Now,
) -> Result<Vec<bool>, StoreError> {
    let (mut failed, mut queued) = (Vec::new(), Vec::new());
    let mut taken = vec![false; batch.len()];
    for (at, requeue) in batch.into_iter().enumerate() {
        match requeue.finish() {
            Some(end) => failed.push((at, LostEnd { end, crashed: requeue.crashed })),
            None => queued.push((at, requeue)),
        }
    }
    // Each part by itself: they lock their rows in different orders.
    if !queued.is_empty() {
        let (places, batch): (Vec<usize>, Vec<Requeue>) = queued.into_iter().unzip();
        let args = (node.0, batch, micros(now.literal()));
        let back = store
            .hot
            .run(args, |connection, args| async move {
                let (node, batch, now) = &*args;
                run(&connection, *node, batch, *now).await
            })
            .await?;
        places.into_iter().zip(back).for_each(|(at, back)| taken[at] = back);
    }
    if !failed.is_empty() {
        let (places, ends): (Vec<usize>, Vec<LostEnd>) = failed.into_iter().unzip();
        let ended = fail_lost(store, node, ends).await?;
        let is_done = ended.into_iter().map(|end| end == FinishResult::Done);
        places.into_iter().zip(is_done).for_each(|(at, done)| taken[at] = done);
    }
    Ok(taken)
}

/// Says which of the batch went back into the queue.
pub(super) async fn run(
    connection: &Connection,
    node: i32,
    batch: &[Requeue],
    now: Option<i64>,
) -> Tried<Vec<bool>> {
    let mut sorted: Vec<(&Requeue, &QueueEntry)> = Vec::with_capacity(batch.len());
    for requeue in batch {
        if let AfterLoss::Queue(ticket) = &requeue.then {
            sorted.push((requeue, ticket));
        }
    }
    sorted.sort_unstable_by_key(|(requeue, _)| (requeue.key.job_no, requeue.key));
    let keys: KeyColumns = sorted.iter().map(|(requeue, _)| requeue.key).collect();
    let fences: Vec<i32> = sorted.iter().map(|(requeue, _)| fence(requeue.fence)).collect();
    let crashed: Vec<bool> = sorted.iter().map(|(requeue, _)| requeue.crashed).collect();
    let mut tickets = TicketColumns::default();
    sorted.iter().for_each(|(_, ticket)| tickets.push(Some(ticket)));
    let rows = connection
        .rows(
            sql!("requeue"),
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
    let requeued = rows.iter().map(|row| Ok(key(row)?)).collect::<Tried<HashSet<AttemptKey>>>()?;
    Ok(batch.iter().map(|requeue| requeued.contains(&requeue.key)).collect())
}
