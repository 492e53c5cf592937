//! Takes attempts away from a lost worker: requeues them, or ends them as failed.

use std::collections::HashSet;

use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{AfterLoss, FinishResult, Now, QueueEntry, Requeue, StoreError};

use super::finish::{LostEnd, fail_lost};
use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, QueueColumns, column, fence, key, micros};

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
    // Requeueing and failing use separate transactions, because they lock rows in different orders.
    if !queued.is_empty() {
        let (positions, batch): (Vec<usize>, Vec<Requeue>) = queued.into_iter().unzip();
        let now = micros(now.literal());
        let requeued = run!(store.hot, batch, |connection, batch| {
            run(connection, node.0, batch, now).await
        })?;
        positions.into_iter().zip(requeued).for_each(|(at, requeued)| taken[at] = requeued);
    }
    if !failed.is_empty() {
        let (positions, ends): (Vec<usize>, Vec<LostEnd>) = failed.into_iter().unzip();
        let ended = fail_lost(store, node, ends).await?;
        let is_done = ended.into_iter().map(|end| end == FinishResult::Done);
        positions.into_iter().zip(is_done).for_each(|(at, done)| taken[at] = done);
    }
    Ok(taken)
}

/// Returns which attempts of the batch were requeued.
pub(super) async fn run(
    connection: &Connection,
    node: i32,
    batch: &[Requeue],
    now: Option<i64>,
) -> Tried<Vec<bool>> {
    let mut sorted: Vec<(&Requeue, &QueueEntry)> = Vec::with_capacity(batch.len());
    for requeue in batch {
        if let AfterLoss::Queue(entry) = &requeue.then {
            sorted.push((requeue, entry));
        }
    }
    sorted.sort_unstable_by_key(|(requeue, _)| (requeue.key.job_no, requeue.key));
    let keys: KeyColumns = sorted.iter().map(|(requeue, _)| requeue.key).collect();
    let fences = column(&sorted, |(requeue, _)| fence(requeue.fence));
    let crashed = column(&sorted, |(requeue, _)| requeue.crashed);
    let mut entries = QueueColumns::default();
    sorted.iter().for_each(|(_, entry)| entries.push(Some(entry)));
    let params: Params<'_> = &[
        &now, &node, &keys.job_no, &keys.scheduled_at, &keys.sequence, &keys.attempt, &fences,
        &crashed, &entries.pool, &entries.lane, &entries.priority, &entries.should_start_by,
        &entries.limit_key, &entries.open_from, &entries.open_until, &entries.forbidden_nodes,
        &entries.own_priority, &entries.since, &entries.rise, &entries.limit_max,
    ];
    let rows = connection.rows(sql!("requeue"), params).await?;
    let requeued = rows.iter().map(key).collect::<Tried<HashSet<AttemptKey>>>()?;
    Ok(batch.iter().map(|requeue| requeued.contains(&requeue.key)).collect())
}
