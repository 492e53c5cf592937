//! How many jobs are in which state.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{Slot, Span, Timestamp};
use evenkeel_store::{JobCounts, LIST_SCAN_MAX, Scope, SlotLoad, StoreError, status_when_due};
use tokio_postgres::Row;

use super::list::kept_count;
use super::list_statements::{counting, counting_due};
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get};

/// How many jobs are in which state. Those that only wait for their next time are what the others
/// leave.
pub(super) async fn job_counts(
    store: &PostgresStore,
    scope: &Scope,
) -> Result<JobCounts, StoreError> {
    store
        .api
        .run(scope.tenant.0, |connection, tenant| async move {
            let total = kept_count(&connection, *tenant).await?;
            let mut counts = JobCounts { total, ..JobCounts::default() };
            let rows = connection.rows(&counting(), &[&*tenant]).await?;
            let mut others = 0;
            for row in &rows {
                counts.is_estimate |= get::<bool>(row, 0)?;
                // Without a job in any of these states there is only the first column.
                let Some(status) = get::<Option<i32>>(row, 1)? else { continue };
                let known = usize::try_from(status).ok().and_then(|code| JobStatus::ALL.get(code));
                let status = held_status(row, 3, 6)?.or(known.copied());
                let Some(status) = status.filter(|status| *status != JobStatus::Scheduled) else {
                    continue;
                };
                *counts.of_mut(status) += count(row, 2)?;
                others += count(row, 2)?;
            }
            counts.scheduled = counts.total.saturating_sub(others);
            Ok(counts)
        })
        .await
}

/// The state of a due job with blackouts, if the row is about one: its definition, average and the
/// time it is are in the columns from `first` on.
pub(super) fn held_status(row: &Row, first: usize, next_at: usize) -> Tried<Option<JobStatus>> {
    let Some(definition) = get::<Option<String>>(row, first)? else { return Ok(None) };
    let seen: Option<i64> = get(row, first + 1)?;
    let seen = seen.map(|micros| Span::from_micros(micros.unsigned_abs()));
    let now = Timestamp::from_micros(get(row, first + 2)?);
    let next_at = Timestamp::from_micros(get(row, next_at)?);
    Ok(Some(status_when_due(&definition, next_at, seen, now)))
}

pub(super) async fn all_job_counts(store: &PostgresStore) -> Result<JobCounts, StoreError> {
    store
        .api
        .run(i64::from(LIST_SCAN_MAX) + 1, |connection, bound| async move {
            let (due, looked_at) = all_due(&connection, *bound).await?;
            let sql = sql!("all_job_counts");
            let row = connection.row(sql, &[&*bound]).await?;
            let over: Vec<i64> = get(&row, 5)?;
            let over = |place: usize| over.get(place).copied().unwrap_or(0).unsigned_abs();
            let counts = JobCounts {
                total: count(&row, 0)?,
                paused: count(&row, 1)?,
                cancelled: count(&row, 2)? + over(2),
                running: count(&row, 3)?,
                pending: count(&row, 4)? + over(3) + due,
                completed: over(0),
                failed: over(1),
                ..JobCounts::default()
            };
            Ok(counts.with_rest(over(4).max(looked_at)))
        })
        .await
}

/// How many jobs of all tenants are due, and how many were looked at for that.
async fn all_due(connection: &Connection, bound: i64) -> Tried<(u64, u64)> {
    let (mut due, mut looked_at) = (0, 0);
    for row in &connection.rows(&counting_due(), &[&bound]).await? {
        let jobs = count(row, 1)?;
        let is_held = held_status(row, 2, 5)? == Some(JobStatus::Scheduled);
        looked_at += jobs;
        due += if get(row, 0)? && !is_held { jobs } else { 0 };
    }
    Ok((due, looked_at))
}

pub(super) async fn slot_loads(
    store: &PostgresStore,
    scope: &Scope,
    slots: &[Slot],
    limit: u32,
) -> Result<Vec<SlotLoad>, StoreError> {
    let slots: Vec<i32> = slots.iter().map(|slot| slot.0).collect();
    store
        .api
        .run((scope.tenant.0, slots, i64::from(limit)), |connection, args| async move {
            let (tenant, slots, limit) = &*args;
            let sql = sql!("slot_loads");
            let rows = connection.rows(sql, &[tenant, slots, limit]).await?;
            rows.iter().map(read_load).collect()
        })
        .await
}

fn read_load(row: &Row) -> Tried<SlotLoad> {
    let jobs = u32::try_from(count(row, 0)?).unwrap_or(u32::MAX);
    Ok(SlotLoad { jobs, counted_all: get(row, 1)? })
}
