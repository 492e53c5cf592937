//! Takes attempts away from a node: returns them to the queue under a higher fence, or ends them as
//! failed.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{AfterLoss, FinishResult, OVERRIDE_ALPHA, QueueEntry, Requeue};
use rusqlite::Connection;

use super::cancel::is_asked_to_end;
use super::finish::{finish, is_stopped};
use crate::conditions::mark_after_failure;
use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::notes;
use crate::rows::ReadyRow;
use crate::schedules::fire::by_job;

pub(crate) fn requeue(
    connection: &Connection,
    node: NodeNo,
    batch: &[Requeue],
    now: Timestamp,
) -> Answer<Vec<bool>> {
    let mut results = vec![false; batch.len()];
    for index in by_job(batch, |requeue| requeue.key.job_no) {
        let requeue = &batch[index];
        results[index] = match &requeue.then {
            AfterLoss::Queue(entry) => requeue_one(connection, node, requeue, entry, now)?,
            AfterLoss::Fail(_) => fail_one(connection, node, requeue)?,
        };
    }
    Ok(results)
}

fn fail_one(connection: &Connection, node: NodeNo, requeue: &Requeue) -> Answer<bool> {
    let Some(end) = requeue.finish() else { return Ok(false) };
    if finish(connection, node, &[end], OVERRIDE_ALPHA)? != [FinishResult::Done] {
        return Ok(false);
    }
    if requeue.crashed {
        connection.run(sql!("requeue_count_crash"), &[&requeue.key])?;
    }
    Ok(true)
}

fn requeue_one(
    connection: &Connection,
    node: NodeNo,
    requeue: &Requeue,
    entry: &QueueEntry,
    now: Timestamp,
) -> Answer<bool> {
    let asked_to_end = is_asked_to_end(connection, node, requeue.key)?;
    if asked_to_end.is_some() || is_stopped(connection, requeue.key)? {
        let superseded = asked_to_end == Some(true);
        let outcome = if superseded { Outcome::Superseded } else { Outcome::Cancelled };
        return withdraw(connection, node, requeue, outcome, now);
    }
    let lost: Params<'_> = &[&requeue.key, &node, &requeue.fence, &requeue.crashed];
    let requeued = connection.maybe_value(sql!("requeue_attempt"), lost)?;
    let Some(crashes) = requeued else { return Ok(false) };
    notes::delete(connection, requeue.key)?;
    let row = ReadyRow {
        key: requeue.key,
        tenant: requeue.tenant,
        entry,
        fence: requeue.fence.next(),
        crashes,
        // The attempt's row in the table `attempt` holds the link to the previous run.
        prev: None,
    };
    row.insert(connection)?;
    Ok(true)
}

/// Ends a lost attempt whose run is stopped or cancelled, instead of returning the attempt to the
/// queue.
fn withdraw(
    connection: &Connection,
    node: NodeNo,
    requeue: &Requeue,
    outcome: Outcome,
    now: Timestamp,
) -> Answer<bool> {
    let ended = connection.change(
        sql!("requeue_withdraw"),
        &[&requeue.key, &node, &requeue.fence, &requeue.crashed, &now, &outcome],
    )?;
    connection.run(sql!("command_close_runs"), &[&requeue.key.job_no, &ended, &outcome])?;
    if ended == 1 {
        notes::delete(connection, requeue.key)?;
        mark_after_failure(connection, requeue.key.job_no)?;
    }
    Ok(ended == 1)
}
