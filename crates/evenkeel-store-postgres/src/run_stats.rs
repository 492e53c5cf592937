//! Totals of runs, and failures grouped by similar error.

use async_trait::async_trait;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{JobId, NodeNo, Slot, Timestamp};
use evenkeel_store::{
    ActivityDelta, COUNTED_MAX, FailureCursor, FailureDelta, FailureGroup, Page, PageRequest,
    RunStatsDelta, RunStatsStore, RunTotals, Scope, SlotActivity, StoreError,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::activity;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{
    KeyColumns, column, count, get, key, maybe_time, page_limit, page_of, span, span_micros, time,
};

/// Adds the run totals and failures that a node has counted, and replaces its counts of running
/// attempts.
async fn add(
    connection: &Connection,
    node: i32,
    deltas: &[RunStatsDelta],
    failures: &[FailureDelta],
    at: i64,
) -> Tried<()> {
    connection.change(sql!("set_reported_at"), &[&node, &at]).await?;
    let running = deltas.iter().filter(|delta| delta.running > 0);
    let (tenants, running): (Vec<i32>, Vec<i32>) = running
        .map(|delta| (delta.tenant.0, i32::try_from(delta.running).unwrap_or(i32::MAX)))
        .unzip();
    connection.change(sql!("delete_running_counts"), &[&node, &tenants]).await?;
    if !tenants.is_empty() {
        connection.change(sql!("set_running_counts"), &[&node, &tenants, &running]).await?;
    }
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    if !deltas.is_empty() {
        let params: Params<'_> = &[
            &column(deltas, |delta| delta.tenant.0),
            &column(deltas, |delta| whole(delta.completed)),
            &column(deltas, |delta| whole(delta.failed)),
            &column(deltas, |delta| whole(delta.timed_out)),
            &column(deltas, |delta| whole(delta.cancelled)),
            &column(deltas, |delta| whole(delta.retries)),
            &column(deltas, |delta| whole(delta.stolen)),
            &column(deltas, |delta| span_micros(delta.success_duration)),
        ];
        connection.change(sql!("add_run_totals"), params).await?;
    }
    if !failures.is_empty() {
        let keys: KeyColumns = failures.iter().map(|failure| failure.newest).collect();
        let params: Params<'_> = &[
            &at,
            &column(failures, |failure| failure.tenant.0),
            &column(failures, |failure| failure.fingerprint.0.cast_signed()),
            &column(failures, |failure| whole(failure.count)),
            &column(failures, |failure| failure.at.as_micros()),
            &keys.scheduled_at,
            &keys.job_no,
            &keys.sequence,
            &keys.attempt,
            &column(failures, |failure| failure.error.replace('\0', "\u{fffd}")),
        ];
        connection.change(sql!("add_failures"), params).await?;
    }
    Ok(())
}

async fn list_failures(
    connection: &Connection,
    tenant: i32,
    page: PageRequest<FailureCursor>,
) -> Tried<Page<FailureGroup, FailureCursor>> {
    let (at, fingerprint) = page.after.map_or((i64::MAX, i64::MAX), |(at, fingerprint)| {
        (at.as_micros(), fingerprint.0.cast_signed())
    });
    let (offset, limit, most) =
        (i64::from(page.offset), page_limit(&page), i64::from(COUNTED_MAX) + 1);
    let (rows, total) = try_join(
        connection.rows(sql!("list_failures"), &[&tenant, &at, &fingerprint, &offset, &limit]),
        connection.row(sql!("list_failures_count"), &[&tenant, &most]),
    )
    .await?;
    let cursor = |group: &FailureGroup| (group.last_at, group.fingerprint);
    page_of(&page, &rows, read_group, cursor, (count(&total, 0)?, COUNTED_MAX.into()))
}

fn read_group(row: &Row) -> Tried<FailureGroup> {
    Ok(FailureGroup {
        newest: key(row)?,
        fingerprint: Fingerprint(get::<i64>(row, "fingerprint")?.cast_unsigned()),
        count: count(row, "count")?,
        first_at: time(row, "first_at")?,
        last_at: time(row, "last_at")?,
        error: get(row, "error")?,
        job: get::<Option<Uuid>>(row, "job_id")?.map(JobId),
        job_name: get(row, "job_name")?,
    })
}

#[async_trait]
impl RunStatsStore for PostgresStore {
    async fn add_run_stats(
        &self,
        node: NodeNo,
        deltas: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        activity: Vec<ActivityDelta>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (node, at) = (node.0, at.as_micros());
        let counted = (deltas, failures, activity);
        transaction!(self.api, counted, |connection, (deltas, failures, activity)| {
            add(connection, node, deltas, failures, at).await?;
            activity::add(connection, activity).await
        })
    }

    async fn run_totals(&self, scope: &Scope) -> Result<RunTotals, StoreError> {
        let read = |row: &Row| {
            Ok(RunTotals {
                completed: count(row, "completed")?,
                failed: count(row, "failed")?,
                timed_out: count(row, "timed_out")?,
                cancelled: count(row, "cancelled")?,
                retries: count(row, "retries")?,
                stolen: count(row, "stolen")?,
                success_duration: span(get(row, "succeeded_us")?),
                running: count(row, "running")?,
                at: maybe_time(row, "reported_at")?,
            })
        };
        self.api.row(sql!("run_totals"), params![scope.tenant.0], read).await
    }

    async fn list_failures(
        &self,
        scope: &Scope,
        page: PageRequest<FailureCursor>,
    ) -> Result<Page<FailureGroup, FailureCursor>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| list_failures(connection, tenant, page).await)
    }

    async fn prune_failures(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let params = params![before.as_micros(), i64::from(limit)];
        self.api.change(sql!("prune_failures"), params).await
    }

    async fn list_activity(
        &self,
        scope: &Scope,
        from: Slot,
        until: Slot,
        limit: u32,
    ) -> Result<Vec<SlotActivity>, StoreError> {
        let params = params![scope.tenant.0, from.0, until.0, i64::from(limit)];
        self.api.rows(sql!("list_activity"), params, activity::read_slot).await
    }

    async fn prune_activity(&self, before: Slot, limit: u32) -> Result<u64, StoreError> {
        let params = params![before.0, i64::from(limit)];
        self.api.change(sql!("prune_activity"), params).await
    }
}
