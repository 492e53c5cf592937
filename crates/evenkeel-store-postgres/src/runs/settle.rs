//! Ends a run as somebody says, or puts it back into the queue, under a higher fence.

use async_trait::async_trait;
use evenkeel_core::lease::Fence;
use evenkeel_core::{RunKey, TenantNo};
use evenkeel_store::{
    FinishResult, Scope, Seen, Settle, SettleStore, Signal, Store as _, StoreError, Word,
};

use super::finish::finish_one;
use super::requeue;
use crate::PostgresStore;
use crate::columns::{attempt, fence as fence_column, get, sequence};
use crate::error::{Failure, Tried};
use crate::pool::Connection;
use crate::withdraw::Withdrawn;

#[async_trait]
impl SettleStore for PostgresStore {
    async fn settle(&self, scope: &Scope, settle: Settle) -> Result<bool, StoreError> {
        let done = self
            .api
            .run((scope.tenant, settle), |connection, args| async move {
                let (tenant, settle) = &*args;
                connection.transaction(run(&connection, *tenant, settle)).await
            })
            .await?;
        if done && let Err(error) = self.announce(Signal::Letters).await {
            // The letter is there, and will be found by looking.
            tracing::debug!(%error, "a wake-up was not sent");
        }
        Ok(done)
    }
}

async fn run(connection: &Connection, tenant: TenantNo, settle: &Settle) -> Tried<bool> {
    let done = match settle.seen {
        Seen::Waiting => settle_waiting(connection, tenant, settle).await?,
        Seen::Running { fence, .. } => settle_running(connection, tenant, settle, fence).await?,
    };
    if done {
        let sql = include_str!("../../queries/settle_changed.sql");
        connection.change(sql, &[&settle.key.job_no.0]).await?;
    }
    Ok(done)
}

/// A key as columns: when, of which job, which chain, which attempt.
fn columns(key: RunKey) -> (i64, i64, i32, i16) {
    (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
}

async fn settle_running(
    connection: &Connection,
    tenant: TenantNo,
    settle: &Settle,
    fence: Fence,
) -> Tried<bool> {
    let (at, job, chain, nth) = columns(settle.key);
    let under = fence_column(fence);
    let back = settle.requeue(tenant);
    let sql = if back.is_some() {
        include_str!("../../queries/settle_node.sql")
    } else {
        include_str!("../../queries/settle_running.sql")
    };
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &nth, &tenant.0, &under]).await?;
    let Some(row) = row else { return Ok(false) };
    let node: i32 = get(&row, 0)?;
    if let Some(back) = back {
        let now = Some(settle.at.as_micros());
        if requeue::run(connection, node, &[back], now).await? != [true] {
            return Ok(false);
        }
    } else if let Some(end) = settle.finish(tenant, settle.key, fence.next()) {
        match finish_one(connection, node, end).await? {
            FinishResult::Done => {}
            // Its row is locked: nobody can have been quicker.
            FinishResult::AlreadyDone | FinishResult::LeaseLost => return Err(Failure::Again),
        }
    }
    let word = Word::Settled as i16;
    let sql = include_str!("../../queries/send_letter.sql");
    connection.change(sql, &[&node, &at, &job, &chain, &nth, &under, &word]).await?;
    Ok(true)
}

async fn settle_waiting(connection: &Connection, tenant: TenantNo, settle: &Settle) -> Tried<bool> {
    // Nothing is taken that has no end: what waits is in the queue already.
    if settle.finish(tenant, settle.key, Fence::NONE).is_none() {
        return Ok(false);
    }
    let Some(mut taken) = take(connection, tenant, settle.key).await? else { return Ok(false) };
    let (at, job, chain, nth) = columns(taken.key);
    if taken.is_unfired_trigger() {
        let sql = include_str!("../../queries/settle_link.sql");
        let row = connection.row(sql, &[&job, &at, &chain]).await?;
        taken.prev = (get(&row, 0)?, get(&row, 1)?);
    }
    let fence = Fence(taken.fence.cast_unsigned()).next();
    let sql = include_str!("../../queries/settle_begin.sql");
    let row = connection
        .row(
            sql,
            &[
                &at,
                &job,
                &chain,
                &nth,
                &tenant.0,
                &fence_column(fence),
                &taken.crashes,
                &taken.prev.0,
                &taken.prev.1,
            ],
        )
        .await?;
    let node: i32 = get(&row, 0)?;
    if let Some(end) = settle.finish(tenant, taken.key, fence)
        && finish_one(connection, node, end).await? != FinishResult::Done
    {
        return Err(Failure::Again);
    }
    let sql = include_str!("../../queries/settle_nobody.sql");
    connection.change(sql, &[&at, &job, &chain, &nth]).await?;
    Ok(true)
}

/// Takes what waits of a run away.
async fn take(connection: &Connection, tenant: TenantNo, key: RunKey) -> Tried<Option<Withdrawn>> {
    let (at, job, chain, _) = columns(key);
    let sql = include_str!("../../queries/cancel_run_ready.sql");
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &tenant.0]).await?;
    if let Some(row) = row {
        return Ok(Some(Withdrawn::from_queue(&row)?));
    }
    let sql = include_str!("../../queries/cancel_run_wake.sql");
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &tenant.0]).await?;
    row.as_ref().map(Withdrawn::from_wake).transpose()
}
