//! Overrides the outcome of an attempt, or requeues it, under a higher fence.

use async_trait::async_trait;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::{JobId, TenantNo};
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
use crate::connection::{Connection, Params};
use crate::dedup::Keys;
use crate::error::{Failure, Tried};
use crate::jobs::get_job;
use crate::rows::{fence as fence_column, get, key, key_columns, maybe_priority, maybe_time};

#[async_trait]
impl OverrideStore for PostgresStore {
    async fn active_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<LiveAttempt>, StoreError> {
        let params = params![job.0, scope.tenant.0, i64::from(limit)];
        self.api.rows(sql!("active_attempts"), params, read_live).await
    }

    async fn override_outcome(
        &self,
        scope: &Scope,
        request: OutcomeOverride,
    ) -> Result<OverrideResult, StoreError> {
        let tenant = scope.tenant;
        let result = transaction!(self.api, request, |connection, request| {
            run(connection, tenant, request).await
        })?;
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
        connection.change(sql!("override_changed"), &[&request.key.job_no.0]).await?;
    }
    Ok(result)
}

async fn override_running(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
    fence: Fence,
) -> Tried<OverrideResult> {
    let (at, job, run, nth) = key_columns(request.key);
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
    let params: Params<'_> = &[&node, &at, &job, &run, &nth, &under, &kind];
    connection.change(sql!("send_message"), params).await?;
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
    connection.rows(sql!("command_lock_states"), &[&vec![no]]).await?;
    let row = connection.row(sql!("override_job"), &[&no]).await?;
    let job = get_job(connection, get::<Uuid>(&row, 0)?, tenant).await?;
    let is_after = |stopped_at| request.key.scheduled_at > stopped_at;
    let Some(job) = job.filter(|job| job.stopped_at.is_none_or(is_after)) else {
        return Ok(OverrideResult::Stopped);
    };
    let now = Some(request.at.as_micros());
    if let Some(wanted) = DedupClaim::by_run(&job, DedupPurpose::Requeue, request.at) {
        let key = [(wanted.key, wanted.job)].into_iter();
        let mut keys = Keys::lock(connection, tenant, key, now).await?;
        if let Some(held) = keys.kept_out_by(&wanted, request.at) {
            return Ok(OverrideResult::Duplicate(held.job));
        }
        keys.take(&wanted);
        keys.write(connection).await?;
    }
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
    let (at, job, run, nth) = key_columns(taken.key);
    if taken.is_unfired_trigger() {
        let row = connection.row(sql!("override_link"), &[&job, &at, &run]).await?;
        taken.prev = (get(&row, 0)?, get(&row, 1)?);
    }
    let fence = Fence(taken.fence.cast_unsigned()).next();
    let (under, (prev_at, prev_sequence)) = (fence_column(fence), taken.prev);
    let params: Params<'_> =
        &[&at, &job, &run, &nth, &tenant.0, &under, &taken.crashes, &prev_at, &prev_sequence];
    let row = connection.row(sql!("override_begin"), params).await?;
    let node: i32 = get(&row, 0)?;
    if let Some(end) = request.finish(tenant, taken.key, fence)
        && finish_one(connection, node, end).await? != FinishResult::Done
    {
        return Err(Failure::Again);
    }
    connection.change(sql!("override_unowned"), &[&at, &job, &run, &nth]).await?;
    Ok(OverrideResult::Done)
}
