//! Ends a run as somebody says, or puts it back into the queue, under a higher fence.

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::{Attempt, NodeNo, RunKey, TenantNo};
use evenkeel_store::{
    Finish, FinishResult, Letter, Now, RunLink, SETTLED_ALPHA, Scope, Seen, Settle, SettleStore,
    Signal, StoreError, Word,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::finish::finish;
use super::requeue::requeue;
use crate::SqliteStore;
use crate::error::Answer;
use crate::fire::link_in;
use crate::jobs::mark_changed;
use crate::notes::send_letter;
use crate::queue::Urgency::Command;
use crate::rows::{key_params, link, link_columns};

#[async_trait]
impl SettleStore for SqliteStore {
    async fn settle(&self, scope: &Scope, settle: Settle) -> Result<bool, StoreError> {
        let tenant = scope.tenant;
        let done = self
            .writer
            .write(Command, 4, move |session| settle_run(session.connection(), tenant, &settle))
            .await?;
        if done {
            self.signals.send(Signal::Letters);
        }
        Ok(done)
    }
}

fn settle_run(connection: &Connection, tenant: TenantNo, settle: &Settle) -> Answer<bool> {
    let done = match settle.seen {
        Seen::Waiting => settle_waiting(connection, tenant, settle)?,
        Seen::Running { fence, .. } => settle_running(connection, tenant, settle, fence)?,
    };
    if done {
        mark_changed(connection, settle.key.job_no)?;
    }
    Ok(done)
}

fn settle_running(
    connection: &Connection,
    tenant: TenantNo,
    settle: &Settle,
    fence: Fence,
) -> Answer<bool> {
    let key = settle.key;
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let which = params![scheduled_at, job_no, sequence, attempt, tenant.0, fence.0];
    let node_by = |sql: &'static str| -> Answer<Option<NodeNo>> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row(which, |row| row.get(0)).optional()?.map(NodeNo))
    };
    let (node, done) = if let Some(back) = settle.requeue(tenant) {
        let node = node_by(include_str!("../../queries/settle_node.sql"))?;
        let Some(node) = node else { return Ok(false) };
        (node, requeue(connection, node, &[back], Now::At(settle.at))? == [true])
    } else if let Some(end) = settle.finish(tenant, key, fence.next()) {
        let node = node_by(include_str!("../../queries/settle_running.sql"))?;
        let Some(node) = node else { return Ok(false) };
        (node, record(connection, node, end)?)
    } else {
        return Ok(false);
    };
    if done {
        send_letter(connection, node, Letter { key, fence, word: Word::Settled })?;
    }
    Ok(done)
}

/// An attempt that waits.
struct Taken {
    key: RunKey,
    prev: Option<RunLink>,
    fence: Fence,
    crashes: u16,
}

fn settle_waiting(connection: &Connection, tenant: TenantNo, settle: &Settle) -> Answer<bool> {
    // Nothing is taken that has no end: what waits is in the queue already.
    if settle.finish(tenant, settle.key, Fence::NONE).is_none() {
        return Ok(false);
    }
    let Some(taken) = take(connection, tenant, settle.key)? else { return Ok(false) };
    let Taken { key, prev, fence, crashes } = taken;
    let Some(end) = settle.finish(tenant, key, fence.next()) else { return Ok(false) };
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let (prev_at, prev_sequence) = link_columns(prev);
    let node = connection
        .prepare_cached(include_str!("../../queries/settle_begin.sql"))?
        .query_row(
            params![
                scheduled_at,
                job_no,
                sequence,
                attempt,
                tenant.0,
                fence.next().0,
                crashes,
                prev_at,
                prev_sequence,
            ],
            |row| row.get(0),
        )
        .map(NodeNo)?;
    let done = record(connection, node, end)?;
    connection
        .prepare_cached(include_str!("../../queries/settle_nobody.sql"))?
        .execute(key_params(key))?;
    Ok(done)
}

/// Takes what waits of a run away.
fn take(connection: &Connection, tenant: TenantNo, key: RunKey) -> Answer<Option<Taken>> {
    let (scheduled_at, job_no, sequence, _) = key_params(key);
    let chain = params![scheduled_at, job_no, sequence, tenant.0];
    let wake: Option<u16> = connection
        .prepare_cached(include_str!("../../queries/cancel_run_wake.sql"))?
        .query_row(chain, |row| row.get(0))
        .optional()?;
    if let Some(attempt) = wake {
        let key = key.with_attempt(Attempt(attempt));
        let prev = link_in(connection, key)?;
        return Ok(Some(Taken { key, prev, fence: Fence::NONE, crashes: 0 }));
    }
    let ready = connection
        .prepare_cached(include_str!("../../queries/settle_ready.sql"))?
        .query_row(chain, |row| {
            Ok(Taken {
                key: key.with_attempt(Attempt(row.get(0)?)),
                prev: link(row.get(1)?, row.get(2)?),
                fence: Fence(row.get(3)?),
                crashes: row.get(4)?,
            })
        })
        .optional()?;
    Ok(ready)
}

fn record(connection: &Connection, node: NodeNo, end: Finish) -> Answer<bool> {
    Ok(finish(connection, node, &[end], SETTLED_ALPHA)? == [FinishResult::Done])
}
