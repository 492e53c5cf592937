//! Ends a run as somebody says, or puts it back into the queue, under a higher fence.

use async_trait::async_trait;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, JobId, TenantNo};
use evenkeel_store::{
    DedupClaim, FinishResult, LiveAttempt, LiveState, MessageKind, OutcomeOverride, OverrideResult,
    OverrideStore, Requeue, Scope, Signal, Store as _, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::cancel::Withdrawn;
use super::finish::finish_one;
use super::requeue;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::dedup::Keys;
use crate::error::{Failure, Tried};
use crate::jobs::get_job;
use crate::rows::{attempt, fence as fence_column, get, key, maybe_priority, maybe_time, sequence};

#[async_trait]
impl OverrideStore for PostgresStore {
    async fn active_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<LiveAttempt>, StoreError> {
        self.api
            .run((job.0, scope.tenant.0, i64::from(limit)), |connection, args| async move {
                let (job, tenant, limit) = &*args;
                let sql = sql!("active_attempts");
                let rows = connection.rows(sql, &[job, tenant, limit]).await?;
                rows.iter().map(read_going_on).collect()
            })
            .await
    }

    async fn override_outcome(
        &self,
        scope: &Scope,
        settle: OutcomeOverride,
    ) -> Result<OverrideResult, StoreError> {
        let became = self
            .api
            .run((scope.tenant, settle), |connection, args| async move {
                let (tenant, settle) = &*args;
                connection.transaction(run(&connection, *tenant, settle)).await
            })
            .await?;
        if became == OverrideResult::Done
            && let Err(error) = self.announce(Signal::Messages).await
        {
            // The letter is there, and will be found by looking.
            tracing::debug!(%error, "a wake-up was not sent");
        }
        Ok(became)
    }
}

fn read_going_on(row: &Row) -> Tried<LiveAttempt> {
    let fence: Option<i32> = get(row, "fence")?;
    let seen = match (fence, maybe_time(row, "started_at")?) {
        (Some(fence), Some(started_at)) => {
            LiveState::Running { fence: Fence(fence.cast_unsigned()), started_at }
        }
        _ => LiveState::Waiting,
    };
    Ok(LiveAttempt { key: key(row)?, state: seen, priority: maybe_priority(row, "priority")? })
}

async fn run(
    connection: &Connection,
    tenant: TenantNo,
    settle: &OutcomeOverride,
) -> Tried<OverrideResult> {
    let became = match settle.expected {
        LiveState::Waiting => settle_waiting(connection, tenant, settle).await?,
        LiveState::Running { fence, .. } => {
            settle_running(connection, tenant, settle, fence).await?
        }
    };
    if became == OverrideResult::Done {
        let sql = sql!("override_changed");
        connection.change(sql, &[&settle.key.job_no.0]).await?;
    }
    Ok(became)
}

/// A key as columns: when, of which job, which chain, which attempt.
fn columns(key: AttemptKey) -> (i64, i64, i32, i16) {
    (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
}

async fn settle_running(
    connection: &Connection,
    tenant: TenantNo,
    settle: &OutcomeOverride,
    fence: Fence,
) -> Tried<OverrideResult> {
    let (at, job, chain, nth) = columns(settle.key);
    let under = fence_column(fence);
    let back = settle.requeue(tenant);
    let sql = if back.is_some() { sql!("override_node") } else { sql!("override_running") };
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &nth, &tenant.0, &under]).await?;
    let Some(row) = row else { return Ok(OverrideResult::Elsewhere) };
    let node: i32 = get(&row, 0)?;
    if let Some(back) = back {
        if get(&row, 1)? {
            return Ok(OverrideResult::Stopped);
        }
        let became = go_back(connection, node, settle, back).await?;
        if became != OverrideResult::Done {
            return Ok(became);
        }
    } else if let Some(end) = settle.finish(tenant, settle.key, fence.next()) {
        match finish_one(connection, node, end).await? {
            FinishResult::Done => {}
            // Its row is locked: nobody can have been quicker.
            FinishResult::AlreadyDone | FinishResult::LeaseLost => return Err(Failure::Again),
        }
    }
    let word = MessageKind::Ended as i16;
    let sql = sql!("send_message");
    connection.change(sql, &[&node, &at, &job, &chain, &nth, &under, &word]).await?;
    Ok(OverrideResult::Done)
}

/// Puts an attempt whose row is locked back into the queue, if it may go there.
async fn go_back(
    connection: &Connection,
    node: i32,
    settle: &OutcomeOverride,
    back: Requeue,
) -> Tried<OverrideResult> {
    let (no, tenant) = (settle.key.job_no.0, back.tenant.0);
    let lock = sql!("command_lock_states");
    connection.rows(lock, &[&[no].as_slice()]).await?;
    let row = connection.row(sql!("override_job"), &[&no]).await?;
    let job = get_job(connection, get::<Uuid>(&row, 0)?, tenant).await?;
    let goes_on = |stopped_at| settle.key.scheduled_at > stopped_at;
    let Some(job) = job.filter(|job| job.stopped_at.is_none_or(goes_on)) else {
        return Ok(OverrideResult::Stopped);
    };
    if let Some(wanted) = DedupClaim::by_run(&job, DedupPurpose::Requeue, settle.at) {
        let now = Some(settle.at.as_micros());
        let key = [(wanted.key, wanted.job)].into_iter();
        let mut keys = Keys::lock(connection, tenant, key, now).await?;
        if let Some(held) = keys.kept_out_by(&wanted, settle.at) {
            return Ok(OverrideResult::Duplicate(held.job));
        }
        keys.take(&wanted);
        keys.write(connection).await?;
    }
    let now = Some(settle.at.as_micros());
    match requeue::run(connection, node, &[back], now).await?[..] {
        [true] => Ok(OverrideResult::Done),
        // Its row is locked: nobody can have been quicker.
        _ => Err(Failure::Again),
    }
}

async fn settle_waiting(
    connection: &Connection,
    tenant: TenantNo,
    settle: &OutcomeOverride,
) -> Tried<OverrideResult> {
    // Nothing is taken that has no end: what waits is in the queue already.
    if settle.finish(tenant, settle.key, Fence::NONE).is_none() {
        return Ok(OverrideResult::Elsewhere);
    }
    let Some(mut taken) = take(connection, tenant, settle.key).await? else {
        return Ok(OverrideResult::Elsewhere);
    };
    let (at, job, chain, nth) = columns(taken.key);
    if taken.is_unfired_trigger() {
        let sql = sql!("override_link");
        let row = connection.row(sql, &[&job, &at, &chain]).await?;
        taken.prev = (get(&row, 0)?, get(&row, 1)?);
    }
    let fence = Fence(taken.fence.cast_unsigned()).next();
    let sql = sql!("override_begin");
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
    let sql = sql!("override_unowned");
    connection.change(sql, &[&at, &job, &chain, &nth]).await?;
    Ok(OverrideResult::Done)
}

/// Takes what waits of a run away.
async fn take(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
) -> Tried<Option<Withdrawn>> {
    let (at, job, chain, _) = columns(key);
    let sql = sql!("cancel_run_ready");
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &tenant.0]).await?;
    if let Some(row) = row {
        return Ok(Some(Withdrawn::from_queue(&row)?));
    }
    let sql = sql!("cancel_run_delayed");
    let row = connection.maybe_row(sql, &[&at, &job, &chain, &tenant.0]).await?;
    row.as_ref().map(Withdrawn::from_delayed).transpose()
}
