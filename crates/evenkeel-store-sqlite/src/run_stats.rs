//! Statistics of runs, and failures grouped by equal error.

use async_trait::async_trait;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{NodeNo, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{
    ActivityDelta, COUNTED_MAX, FailureCursor, FailureDelta, FailureGroup, Page, PageRequest,
    RunStatsDelta, RunStatsStore, RunTotals, Scope, SlotActivity, StoreError, sql_time,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::activity;
use crate::connection::Urgency::Batch;
use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::rows::{capped_total, count, job_id, key_from, page_of};

fn delta(
    connection: &Connection,
    node: NodeNo,
    totals: &[RunStatsDelta],
    failures: &[FailureDelta],
    at: Timestamp,
) -> Answer<()> {
    connection.run(sql!("set_reported_at"), &[&node, &at])?;
    connection.run(sql!("delete_running_counts"), &[&node])?;
    for delta in totals {
        let more: Params<'_> = &[
            &delta.tenant, &delta.completed, &delta.failed, &delta.timed_out, &delta.cancelled,
            &delta.retries, &delta.stolen, &delta.success_duration,
        ];
        connection.run(sql!("add_run_totals"), more)?;
        if delta.running > 0 {
            connection.run(sql!("set_running_counts"), &[&node, &delta.tenant, &delta.running])?;
        }
    }
    for failure in failures {
        let FailureDelta { tenant, fingerprint, count, newest, error, .. } = failure;
        let row: Params<'_> = &[tenant, fingerprint, count, &at, &failure.at, newest, error];
        connection.run(sql!("add_failures"), row)?;
    }
    Ok(())
}

fn run_totals(connection: &Connection, tenant: TenantNo) -> Answer<RunTotals> {
    connection.row(sql!("run_totals"), &[&tenant], |row| {
        Ok(RunTotals {
            completed: count(row, "completed")?,
            failed: count(row, "failed")?,
            timed_out: count(row, "timed_out")?,
            cancelled: count(row, "cancelled")?,
            retries: count(row, "retries")?,
            stolen: count(row, "stolen")?,
            success_duration: Span::from_micros(count(row, "succeeded_us")?),
            running: count(row, "running")?,
            at: sql_time(row.get("reported_at")?),
        })
    })
}

fn list_failures(
    connection: &Connection,
    tenant: TenantNo,
    page: PageRequest<FailureCursor>,
) -> Answer<Page<FailureGroup, FailureCursor>> {
    let most = u64::from(COUNTED_MAX);
    let counted = connection.value(sql!("list_failures_count"), &[&tenant, &(most + 1)])?;
    // Without a cursor, the list starts after every group of failures.
    let start = (Timestamp::from_micros(i64::MAX), Fingerprint(i64::MAX.cast_unsigned()));
    let (at, fingerprint) = page.after.unwrap_or(start);
    let limit = i64::from(page.limit) + 1;
    let which: Params<'_> = &[&tenant, &at, &fingerprint, &limit, &page.offset];
    let items = connection.rows(sql!("list_failures"), which, group_from)?;
    let total = capped_total(counted, most);
    Ok(page_of(items, page.limit, total, |group| (group.last_at, group.fingerprint)))
}

fn group_from(row: &Row<'_>) -> Answer<FailureGroup> {
    let job: Option<Vec<u8>> = row.get("id")?;
    Ok(FailureGroup {
        fingerprint: Fingerprint(row.get::<_, i64>("fingerprint")?.cast_unsigned()),
        count: count(row, "count")?,
        first_at: Timestamp::from_micros(row.get("first_at")?),
        last_at: Timestamp::from_micros(row.get("last_at")?),
        error: row.get("error")?,
        newest: key_from(row)?,
        job: job.map(job_id).transpose()?,
        job_name: row.get("name")?,
    })
}

#[async_trait]
impl RunStatsStore for SqliteStore {
    async fn add_run_stats(
        &self,
        node: NodeNo,
        totals: Vec<RunStatsDelta>,
        failures: Vec<FailureDelta>,
        activity: Vec<ActivityDelta>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let rows = totals.len() + failures.len() + activity.len() + 1;
        self.writer
            .write(Batch, rows, move |db| {
                delta(db, node, &totals, &failures, at)?;
                activity::add(db, &activity)
            })
            .await
    }

    async fn run_totals(&self, scope: &Scope) -> Result<RunTotals, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| run_totals(db, tenant)).await
    }

    async fn list_failures(
        &self,
        scope: &Scope,
        page: PageRequest<FailureCursor>,
    ) -> Result<Page<FailureGroup, FailureCursor>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list_failures(db, tenant, page)).await
    }

    async fn prune_failures(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.writer
            .write(Batch, limit as usize, move |db| {
                db.change(sql!("prune_failures"), &[&before, &limit])
            })
            .await
    }

    async fn list_activity(
        &self,
        scope: &Scope,
        from: Slot,
        until: Slot,
        limit: u32,
    ) -> Result<Vec<SlotActivity>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| activity::list(db, tenant, (from, until), limit)).await
    }

    async fn prune_activity(&self, before: Slot, limit: u32) -> Result<u64, StoreError> {
        let rows = limit as usize;
        self.writer.write(Batch, rows, move |db| activity::prune(db, before, limit)).await
    }
}
