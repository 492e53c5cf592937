//! Overrides the outcome of a run: ends it with a given outcome or returns it to the queue, under a
//! higher fence.

use async_trait::async_trait;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::{JobId, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{
    DedupClaim, Finish, FinishResult, LiveAttempt, LiveState, MessageKind, NodeMessage,
    OVERRIDE_ALPHA, OutcomeOverride, OverrideResult, OverrideStore, Requeue, Scope, Signal,
    StoreError,
};
use rusqlite::Connection;

use super::cancel::{Taken, find_running, is_asked_to_end, take_waiting};
use super::finish::{finish, is_stopped};
use super::requeue::requeue;
use crate::connection::Urgency::Command;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::jobs::read;
use crate::jobs::register::mark_changed;
use crate::notes::send_message;
use crate::rows::{find_job_no, job_head, job_id, key_from, priority_from};
use crate::{SqliteStore, dedup};

#[async_trait]
impl OverrideStore for SqliteStore {
    async fn active_attempts(
        &self,
        scope: &Scope,
        job: JobId,
        limit: u32,
    ) -> Result<Vec<LiveAttempt>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| active_attempts(db, tenant, job, limit)).await
    }

    async fn override_outcome(
        &self,
        scope: &Scope,
        request: OutcomeOverride,
    ) -> Result<OverrideResult, StoreError> {
        let tenant = scope.tenant;
        let result =
            self.writer.write(Command, 4, move |db| override_run(db, tenant, &request)).await?;
        if result == OverrideResult::Done {
            self.signals.send(Signal::Messages);
        }
        Ok(result)
    }
}

fn active_attempts(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
    limit: u32,
) -> Answer<Vec<LiveAttempt>> {
    let Some(no) = find_job_no(connection, tenant, job)? else { return Ok(Vec::new()) };
    let mut all = connection.rows(sql!("active_attempts_waiting"), &[&no, &limit], |row| {
        let (key, priority) = (key_from(row)?, priority_from(row)?);
        Ok(LiveAttempt { key, state: LiveState::Waiting, priority })
    })?;
    let mut running = connection.prepare_cached(sql!("active_attempts_running"))?;
    // Active runs that are not waiting are running, so their number limits the search for running
    // attempts.
    let live = job_head(connection, no)?.map_or(0, |head| head.live);
    let runs = live.saturating_sub(u32::try_from(all.len()).unwrap_or(u32::MAX));
    for (_, key) in find_running(connection, no, runs)? {
        all.extend(running.maybe_row(&[&key], |row| {
            let fence = Fence(row.get("fence")?);
            let started_at = Timestamp::from_micros(row.get("started_at")?);
            let state = LiveState::Running { fence, started_at };
            Ok(LiveAttempt { key, state, priority: priority_from(row)? })
        })?);
    }
    all.sort_unstable_by_key(|attempt| attempt.key);
    all.truncate(limit as usize);
    Ok(all)
}

fn override_run(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
) -> Answer<OverrideResult> {
    let result = match request.expected {
        LiveState::Waiting => override_waiting(connection, tenant, request)?,
        LiveState::Running { fence, .. } => override_running(connection, tenant, request, fence)?,
    };
    if result == OverrideResult::Done {
        mark_changed(connection, request.key.job_no)?;
    }
    Ok(result)
}

fn override_running(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
    fence: Fence,
) -> Answer<OverrideResult> {
    let key = request.key;
    let which: Params<'_> = &[&key, &tenant, &fence];
    let node_by = |sql| connection.maybe_row(sql, which, |row| Ok(NodeNo(row.get(0)?)));
    let (node, result) = if let Some(requeued) = request.requeue(tenant) {
        let node = node_by(sql!("override_node"))?;
        let Some(node) = node else { return Ok(OverrideResult::Changed) };
        (node, return_to_queue(connection, node, request, requeued)?)
    } else if let Some(end) = request.finish(tenant, key, fence.next()) {
        let node = node_by(sql!("override_running"))?;
        let Some(node) = node else { return Ok(OverrideResult::Changed) };
        (node, record(connection, node, end)?)
    } else {
        return Ok(OverrideResult::Changed);
    };
    if result == OverrideResult::Done {
        send_message(connection, node, NodeMessage { key, fence, kind: MessageKind::Ended })?;
    }
    Ok(result)
}

/// Returns a running attempt to the queue, unless its job is stopped or is a duplicate.
fn return_to_queue(
    connection: &Connection,
    node: NodeNo,
    request: &OutcomeOverride,
    requeued: Requeue,
) -> Answer<OverrideResult> {
    let (no, tenant) = (request.key.job_no, requeued.tenant);
    let id: Vec<u8> = connection.value(sql!("override_job"), &[&no])?;
    let is_over = is_stopped(connection, request.key)?
        || is_asked_to_end(connection, node, request.key)?.is_some();
    let job = read::get(connection, tenant, job_id(id)?)?.filter(|_| !is_over);
    let Some(job) = job else { return Ok(OverrideResult::Stopped) };
    let claim = DedupClaim::by_run(&job, DedupPurpose::Requeue, request.at);
    if let Some(holder) = dedup::holder_of(connection, tenant, claim.as_ref(), request.at)? {
        return Ok(OverrideResult::Duplicate(holder.id));
    }
    dedup::take(connection, tenant, claim.as_ref(), no, request.at)?;
    let is_queued = requeue(connection, node, &[requeued], request.at)? == [true];
    Ok(if is_queued { OverrideResult::Done } else { OverrideResult::Changed })
}

fn override_waiting(
    connection: &Connection,
    tenant: TenantNo,
    request: &OutcomeOverride,
) -> Answer<OverrideResult> {
    // A waiting attempt is already in the queue, so there is nothing to do unless the override ends
    // it.
    if request.finish(tenant, request.key, Fence::NONE).is_none() {
        return Ok(OverrideResult::Changed);
    }
    let Some(taken) = take_waiting(connection, tenant, request.key)? else {
        return Ok(OverrideResult::Changed);
    };
    let Taken { key, prev, fence, crashes } = taken;
    let Some(end) = request.finish(tenant, key, fence.next()) else {
        return Ok(OverrideResult::Changed);
    };
    let begin: Params<'_> = &[&key, &tenant, &fence.next(), &crashes, &prev];
    let node = NodeNo(connection.value(sql!("override_begin"), begin)?);
    let result = record(connection, node, end)?;
    connection.run(sql!("override_unowned"), &[&key])?;
    Ok(result)
}

fn record(connection: &Connection, node: NodeNo, end: Finish) -> Answer<OverrideResult> {
    let is_done = finish(connection, node, &[end], OVERRIDE_ALPHA)? == [FinishResult::Done];
    Ok(if is_done { OverrideResult::Done } else { OverrideResult::Changed })
}
