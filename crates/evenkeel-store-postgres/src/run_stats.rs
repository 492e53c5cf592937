//! Totals of runs, and failures grouped by similar error.

use async_trait::async_trait;
use evenkeel_core::fingerprint::Fingerprint;
use evenkeel_core::{JobId, NodeNo, Timestamp};
use evenkeel_store::{
    COUNTED_MAX, FailureCursor, FailureDelta, FailureGroup, Page, PageRequest, RunStatsDelta,
    RunStatsStore, RunTotals, Scope, StoreError,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{KeyColumns, count, get, key, maybe_time, span, span_micros, time};

struct Args {
    node: i32,
    at: i64,
    sums: Sums,
    running: (Vec<i32>, Vec<i32>),
    failures: FailureColumns,
}

/// Run totals of tenants, as arrays.
#[derive(Default)]
struct Sums {
    tenant: Vec<i32>,
    counts: [Vec<i64>; 7],
}

/// Failures, as arrays.
#[derive(Default)]
struct FailureColumns {
    tenant: Vec<i32>,
    fingerprint: Vec<i64>,
    count: Vec<i64>,
    last_at: Vec<i64>,
    key: KeyColumns,
    error: Vec<String>,
}

impl Args {
    fn new(
        node: NodeNo,
        deltas: &[RunStatsDelta],
        failures: &[FailureDelta],
        at: Timestamp,
    ) -> Self {
        let mut sums = Sums::default();
        let mut running = (Vec::new(), Vec::new());
        for delta in deltas {
            let counts = [
                delta.completed, delta.failed, delta.timed_out, delta.cancelled, delta.retries,
                delta.stolen,
            ];
            let counts = counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            let duration = span_micros(delta.success_duration);
            sums.tenant.push(delta.tenant.0);
            for (column, count) in sums.counts.iter_mut().zip(counts.into_iter().chain([duration]))
            {
                column.push(count);
            }
            if delta.running > 0 {
                running.0.push(delta.tenant.0);
                running.1.push(i32::try_from(delta.running).unwrap_or(i32::MAX));
            }
        }
        let mut columns = FailureColumns::default();
        for failure in failures {
            columns.tenant.push(failure.tenant.0);
            columns.fingerprint.push(failure.fingerprint.0.cast_signed());
            columns.count.push(i64::try_from(failure.count).unwrap_or(i64::MAX));
            columns.last_at.push(failure.at.as_micros());
            columns.key.push(failure.newest);
            columns.error.push(failure.error.replace('\0', "\u{fffd}"));
        }
        Self { node: node.0, at: at.as_micros(), sums, running, failures: columns }
    }

    async fn write(&self, connection: &Connection) -> Tried<()> {
        let sql = sql!("set_reported_at");
        connection.change(sql, &[&self.node, &self.at]).await?;
        let (tenants, running) = &self.running;
        let sql = sql!("delete_running_counts");
        connection.change(sql, &[&self.node, tenants]).await?;
        if !tenants.is_empty() {
            let sql = sql!("set_running_counts");
            connection.change(sql, &[&self.node, tenants, running]).await?;
        }
        if !self.sums.tenant.is_empty() {
            let [a, b, c, d, e, f, g] = &self.sums.counts;
            let sql = sql!("add_run_totals");
            connection.change(sql, &[&self.sums.tenant, a, b, c, d, e, f, g]).await?;
        }
        let failures = &self.failures;
        if !failures.tenant.is_empty() {
            connection
                .change(
                    sql!("add_failures"),
                    &[
                        &self.at, &failures.tenant, &failures.fingerprint, &failures.count,
                        &failures.last_at, &failures.key.scheduled_at, &failures.key.job_no,
                        &failures.key.sequence, &failures.key.attempt, &failures.error,
                    ],
                )
                .await?;
        }
        Ok(())
    }
}

async fn list_failures(
    connection: &Connection,
    tenant: i32,
    page: PageRequest<FailureCursor>,
) -> Tried<Page<FailureGroup, FailureCursor>> {
    let most = i64::from(COUNTED_MAX);
    let (at, fingerprint) = page.after.map_or((i64::MAX, i64::MAX), |(at, fingerprint)| {
        (at.as_micros(), fingerprint.0.cast_signed())
    });
    // One extra row shows whether there is another page.
    let (offset, limit, counted) = (i64::from(page.offset), i64::from(page.limit) + 1, most + 1);
    let (rows, total) = try_join(
        connection.rows(sql!("list_failures"), &[&tenant, &at, &fingerprint, &offset, &limit]),
        connection.row(sql!("list_failures_count"), &[&tenant, &counted]),
    )
    .await?;
    let total: i64 = get(&total, 0)?;
    let mut items = rows.iter().map(read_group).collect::<Tried<Vec<FailureGroup>>>()?;
    let has_more = items.len() > page.limit as usize;
    items.truncate(page.limit as usize);
    let next = items.last().map(|item| (item.last_at, item.fingerprint)).filter(|_| has_more);
    let total_is_estimate = total > most;
    Ok(Page { items, total: total.min(most).max(0).cast_unsigned(), total_is_estimate, next })
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
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let args = Args::new(node, &deltas, &failures, at);
        self.api
            .run(args, |connection, args| async move {
                connection.transaction(args.write(&connection)).await
            })
            .await
    }

    async fn run_totals(&self, scope: &Scope) -> Result<RunTotals, StoreError> {
        self.api
            .run(scope.tenant.0, |connection, tenant| async move {
                let sql = sql!("run_totals");
                let row = connection.row(sql, &[&*tenant]).await?;
                Ok(RunTotals {
                    completed: count(&row, "completed")?,
                    failed: count(&row, "failed")?,
                    timed_out: count(&row, "timed_out")?,
                    cancelled: count(&row, "cancelled")?,
                    retries: count(&row, "retries")?,
                    stolen: count(&row, "stolen")?,
                    success_duration: span(get(&row, "succeeded_us")?),
                    running: count(&row, "running")?,
                    at: maybe_time(&row, "reported_at")?,
                })
            })
            .await
    }

    async fn list_failures(
        &self,
        scope: &Scope,
        page: PageRequest<FailureCursor>,
    ) -> Result<Page<FailureGroup, FailureCursor>, StoreError> {
        let args = (scope.tenant.0, page);
        self.api
            .run(args, |connection, args| async move {
                let (tenant, page) = *args;
                list_failures(&connection, tenant, page).await
            })
            .await
    }

    async fn prune_failures(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let args = (before.as_micros(), i64::from(limit));
        self.api
            .run(args, |connection, args| async move {
                let sql = sql!("prune_failures");
                connection.change(sql, &[&args.0, &args.1]).await
            })
            .await
    }
}
