//! Statistics of runs, and failures grouped by equal error.

use async_trait::async_trait;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{NodeNo, Span, TenantNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, FailureCursor, FailureDelta, FailureGroup, Page, PageRequest, RunStatsDelta,
    RunStatsStore, RunTotals, Scope, StoreError, sql_time,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::connection::urgency::Urgency::Batch;
use crate::error::Answer;
use crate::rows::{collect, job_id, key_from, key_params, page_of};

fn delta(
    connection: &Connection,
    node: NodeNo,
    totals: &[RunStatsDelta],
    failures: &[FailureDelta],
    at: Timestamp,
) -> Answer<()> {
    connection.prepare_cached(sql!("set_reported_at"))?.execute(params![node.0, at.as_micros()])?;
    connection.prepare_cached(sql!("delete_running_counts"))?.execute([node.0])?;
    for delta in totals {
        connection.prepare_cached(sql!("add_run_totals"))?.execute(params![
            delta.tenant.0,
            number(delta.completed),
            number(delta.failed),
            number(delta.timed_out),
            number(delta.cancelled),
            number(delta.retries),
            number(delta.stolen),
            number(delta.success_duration.as_micros()),
        ])?;
        if delta.running > 0 {
            connection
                .prepare_cached(sql!("set_running_counts"))?
                .execute(params![node.0, delta.tenant.0, delta.running])?;
        }
    }
    for failure in failures {
        let (scheduled_at, job_no, sequence, attempt) = key_params(failure.newest);
        connection.prepare_cached(sql!("add_failures"))?.execute(params![
            failure.tenant.0,
            failure.fingerprint.0.cast_signed(),
            number(failure.count),
            at.as_micros(),
            failure.at.as_micros(),
            scheduled_at,
            job_no,
            sequence,
            attempt,
            failure.error,
        ])?;
    }
    Ok(())
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn run_totals(connection: &Connection, tenant: TenantNo) -> Answer<RunTotals> {
    let mut statement = connection.prepare_cached(sql!("run_totals"))?;
    Ok(statement.query_row([tenant.0], |row| {
        let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(RunTotals {
            completed: count("completed")?,
            failed: count("failed")?,
            timed_out: count("timed_out")?,
            cancelled: count("cancelled")?,
            retries: count("retries")?,
            stolen: count("stolen")?,
            success_duration: Span::from_micros(count("succeeded_us")?),
            running: count("running")?,
            at: sql_time(row.get("reported_at")?),
        })
    })?)
}

fn list_failures(
    connection: &Connection,
    tenant: TenantNo,
    page: PageRequest<FailureCursor>,
) -> Answer<Page<FailureGroup, FailureCursor>> {
    let most = i64::from(COUNTED_MAX);
    let total: i64 = connection
        .prepare_cached(sql!("list_failures_count"))?
        .query_row(params![tenant.0, most + 1], |row| row.get(0))?;
    let (at, fingerprint) = page.after.map_or((i64::MAX, i64::MAX), |(at, fingerprint)| {
        (at.as_micros(), fingerprint.0.cast_signed())
    });
    let limit = i64::from(page.limit) + 1;
    let mut statement = connection.prepare_cached(sql!("list_failures"))?;
    let items = collect(
        statement.query(params![tenant.0, at, fingerprint, limit, page.offset])?,
        group_from,
    )?;
    let page =
        page_of(items, page.limit, total.min(most), |group| (group.last_at, group.fingerprint));
    Ok(Page { total_is_estimate: total > most, ..page })
}

fn group_from(row: &Row<'_>) -> Answer<FailureGroup> {
    let job: Option<Vec<u8>> = row.get("id")?;
    Ok(FailureGroup {
        fingerprint: Fingerprint(row.get::<_, i64>("fingerprint")?.cast_unsigned()),
        count: row.get::<_, i64>("count")?.unsigned_abs(),
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
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.writer
            .write(Batch, totals.len() + failures.len() + 1, move |session| {
                delta(session.connection(), node, &totals, &failures, at)
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
            .write(Batch, limit as usize, move |session| {
                let sql = sql!("prune_failures");
                let mut statement = session.connection().prepare_cached(sql)?;
                Ok(statement.execute(params![before.as_micros(), limit])? as u64)
            })
            .await
    }
}
