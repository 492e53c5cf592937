//! Overrides the outcome of a run: ends it with a given outcome or returns it to the queue, under a
//! higher fence.

use async_trait::async_trait;
use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::lease::Fence;
use evenkeel_core::{JobId, NodeNo, TenantNo, Timestamp};
use evenkeel_store::{
    DedupClaim, Finish, FinishResult, LiveAttempt, LiveState, MessageKind, NodeMessage, Now,
    OVERRIDE_ALPHA, OutcomeOverride, OverrideResult, OverrideStore, Requeue, Scope, Signal,
    StoreError,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::cancel::{Taken, find_running, is_asked_to_end, take_waiting};
use super::finish::{finish, is_stopped};
use super::requeue::requeue;
use crate::connection::urgency::Urgency::Command;
use crate::error::Answer;
use crate::jobs::read;
use crate::jobs::register::mark_changed;
use crate::notes::send_message;
use crate::rows::{
    find_job_no, job_head, job_id, key_from, key_params, link_columns, priority_from,
};
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
        let result = self
            .writer
            .write(Command, 4, move |session| override_run(session.connection(), tenant, &request))
            .await?;
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
    let mut all = Vec::new();
    let sql = sql!("active_attempts_waiting");
    let mut waiting = connection.prepare_cached(sql)?;
    let mut rows = waiting.query(params![no.0, limit])?;
    while let Some(row) = rows.next()? {
        let (key, priority) = (key_from(row)?, priority_from(row)?);
        all.push(LiveAttempt { key, state: LiveState::Waiting, priority });
    }
    let sql = sql!("active_attempts_running");
    let mut running = connection.prepare_cached(sql)?;
    // Active runs that are not waiting are running, so their number limits the search for running
    // attempts.
    let live = job_head(connection, no)?.map_or(0, |head| head.live);
    let runs = live.saturating_sub(u32::try_from(all.len()).unwrap_or(u32::MAX));
    for (_, key) in find_running(connection, no, runs)? {
        let mut rows = running.query(key_params(key))?;
        if let Some(row) = rows.next()? {
            let fence = Fence(row.get("fence")?);
            let started_at = Timestamp::from_micros(row.get("started_at")?);
            let state = LiveState::Running { fence, started_at };
            all.push(LiveAttempt { key, state, priority: priority_from(row)? });
        }
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
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let which = params![scheduled_at, job_no, sequence, attempt, tenant.0, fence.0];
    let node_by = |sql: &'static str| -> Answer<Option<NodeNo>> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row(which, |row| row.get(0)).optional()?.map(NodeNo))
    };
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
    let id: Vec<u8> =
        connection.prepare_cached(sql!("override_job"))?.query_row([no.0], |row| row.get(0))?;
    let is_over = is_stopped(connection, request.key)?
        || is_asked_to_end(connection, node.0, request.key)?.is_some();
    let job = read::get(connection, tenant, job_id(id)?)?.filter(|_| !is_over);
    let Some(job) = job else { return Ok(OverrideResult::Stopped) };
    let claim = DedupClaim::by_run(&job, DedupPurpose::Requeue, request.at);
    if let Some(holder) = dedup::holder_of(connection, tenant, claim.as_ref(), request.at)? {
        return Ok(OverrideResult::Duplicate(holder.id));
    }
    dedup::take(connection, tenant, claim.as_ref(), no, request.at)?;
    let is_queued = requeue(connection, node, &[requeued], Now::At(request.at))? == [true];
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
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    let (prev_at, prev_sequence) = link_columns(prev);
    let node = connection
        .prepare_cached(sql!("override_begin"))?
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
    let result = record(connection, node, end)?;
    connection.prepare_cached(sql!("override_unowned"))?.execute(key_params(key))?;
    Ok(result)
}

fn record(connection: &Connection, node: NodeNo, end: Finish) -> Answer<OverrideResult> {
    let is_done = finish(connection, node, &[end], OVERRIDE_ALPHA)? == [FinishResult::Done];
    Ok(if is_done { OverrideResult::Done } else { OverrideResult::Changed })
}
