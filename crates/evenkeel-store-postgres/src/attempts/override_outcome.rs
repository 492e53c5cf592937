//! Overrides the outcome of an attempt, or requeues it, under a higher fence.

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

use super::cancel::withdraw_run;
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
                rows.iter().map(read_live).collect()
            })
            .await
    }

    async fn override_outcome(
        &self,
        scope: &Scope,
        request: OutcomeOverride,
    ) -> Result<OverrideResult, StoreError> {
        let result = self
            .api
            .run((scope.tenant, request), |connection, args| async move {
                let (tenant, request) = &*args;
                connection.transaction(run(&connection, *tenant, request)).await
            })
            .await?;
        if result == OverrideResult::Done
            && let Err(error) = self.announce(Signal::Messages).await
        {
            // Nodes also poll for messages, so the receiving node finds this message later.
            tracing::debug!(%error, "notification not sent; receivers also poll");
        }
        Ok(result)
    }
}

fn read_live(row: &Row) -> Tried<LiveAttempt> {
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
    request: &OutcomeOverride,
) -> Tried<OverrideResult> {
    let result = match request.expected {
        LiveState::Waiting => override_pending(connection, tenant, request).await?,
        LiveState::Running { fence, .. } => {
            override_running(connection, tenant, request, fence).await?
        }
    };
    if result == OverrideResult::Done {
        let sql = sql!("override_changed");
        connection.change(sql, &[&request.key.job_no.0]).await?;
    }
    Ok(result)
}

fn columns(key: AttemptKey) -> (i64, i64, i32, i16) {
    (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
}

async fn override_running(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
    fence: Fence,
) -> Tried<OverrideResult> {
    let (at, job, run, nth) = columns(request.key);
    let under = fence_column(fence);
    let requeued = request.requeue(tenant);
    let sql = if requeued.is_some() { sql!("override_node") } else { sql!("override_running") };
    let row = connection.maybe_row(sql, &[&at, &job, &run, &nth, &tenant.0, &under]).await?;
    let Some(row) = row else { return Ok(OverrideResult::Changed) };
    let node: i32 = get(&row, 0)?;
    if let Some(requeued) = requeued {
        if get(&row, 1)? {
            return Ok(OverrideResult::Stopped);
        }
        let result = requeue_locked(connection, node, request, requeued).await?;
        if result != OverrideResult::Done {
            return Ok(result);
        }
    } else if let Some(end) = request.finish(tenant, request.key, fence.next()) {
        match finish_one(connection, node, end).await? {
            FinishResult::Done => {}
            // The attempt's row is locked, so no other transaction can have finished the attempt.
            FinishResult::AlreadyDone | FinishResult::LeaseLost => return Err(Failure::Again),
        }
    }
    let kind = MessageKind::Ended as i16;
    let sql = sql!("send_message");
    connection.change(sql, &[&node, &at, &job, &run, &nth, &under, &kind]).await?;
    Ok(OverrideResult::Done)
}

/// Requeues an attempt whose row is locked, if its job allows that.
async fn requeue_locked(
    connection: &Connection,
    node: i32,
    request: &OutcomeOverride,
    requeued: Requeue,
) -> Tried<OverrideResult> {
    let (no, tenant) = (request.key.job_no.0, requeued.tenant.0);
    let lock = sql!("command_lock_states");
    connection.rows(lock, &[&[no].as_slice()]).await?;
    let row = connection.row(sql!("override_job"), &[&no]).await?;
    let job = get_job(connection, get::<Uuid>(&row, 0)?, tenant).await?;
    let is_after = |stopped_at| request.key.scheduled_at > stopped_at;
    let Some(job) = job.filter(|job| job.stopped_at.is_none_or(is_after)) else {
        return Ok(OverrideResult::Stopped);
    };
    if let Some(wanted) = DedupClaim::by_run(&job, DedupPurpose::Requeue, request.at) {
        let now = Some(request.at.as_micros());
        let key = [(wanted.key, wanted.job)].into_iter();
        let mut keys = Keys::lock(connection, tenant, key, now).await?;
        if let Some(held) = keys.kept_out_by(&wanted, request.at) {
            return Ok(OverrideResult::Duplicate(held.job));
        }
        keys.take(&wanted);
        keys.write(connection).await?;
    }
    let now = Some(request.at.as_micros());
    match requeue::run(connection, node, &[requeued], now).await?[..] {
        [true] => Ok(OverrideResult::Done),
        // The attempt's row is locked, so no other transaction can have finished the attempt.
        _ => Err(Failure::Again),
    }
}

async fn override_pending(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
) -> Tried<OverrideResult> {
    // A pending attempt cannot be requeued, because it is in the queue already.
    if request.finish(tenant, request.key, Fence::NONE).is_none() {
        return Ok(OverrideResult::Changed);
    }
    let Some(mut taken) = withdraw_run(connection, request.key, tenant.0).await? else {
        return Ok(OverrideResult::Changed);
    };
    let (at, job, run, nth) = columns(taken.key);
    if taken.is_unfired_trigger() {
        let sql = sql!("override_link");
        let row = connection.row(sql, &[&job, &at, &run]).await?;
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
                &run,
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
    if let Some(end) = request.finish(tenant, taken.key, fence)
        && finish_one(connection, node, end).await? != FinishResult::Done
    {
        return Err(Failure::Again);
    }
    let sql = sql!("override_unowned");
    connection.change(sql, &[&at, &job, &run, &nth]).await?;
    Ok(OverrideResult::Done)
}
