//! Counts of jobs by status.

use evenkeel_core::TenantNo;
use evenkeel_core::status::JobStatus;
use evenkeel_store::{JobCounts, JobFilter, JobSort, LIST_SCAN_MAX, ListIndex, SlotLoad};
use tokio_postgres::Row;

use super::list::{List, held_job, total};
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get};
use crate::sql::statement;

/// Counts the jobs of a tenant. The number of jobs that wait for their next run is the total minus
/// the jobs in all other states.
pub(super) async fn job_counts(connection: &Connection, tenant: TenantNo) -> Tried<JobCounts> {
    let filter = JobFilter::default();
    let list = List { connection, tenant, filter: &filter, sort: JobSort::default() };
    let total = total(connection, tenant).await?;
    let mut counts = JobCounts { total, ..JobCounts::default() };
    let mut others = 0;
    for row in &list.run(&counting_statement(), &[]).await? {
        counts.is_estimate |= get::<bool>(row, 0)?;
        // If no job is counted, the only row has a value only in the first column.
        let Some(status) = get::<Option<i32>>(row, 1)? else { continue };
        let known = usize::try_from(status).ok().and_then(|code| JobStatus::ALL.get(code));
        let held = held_job(row, 3, 6)?.map(|held| held.status());
        let status = held.or(known.copied());
        let Some(status) = status.filter(|status| *status != JobStatus::Scheduled) else {
            continue;
        };
        *counts.of_mut(status) += count(row, 2)?;
        others += count(row, 2)?;
    }
    counts.scheduled = counts.total.saturating_sub(others);
    Ok(counts)
}

/// Returns the statement that counts the jobs in each state but `scheduled`. The columns are:
/// whether there may be more jobs than were read, the state, the count, and the columns that
/// [`held_job`] reads.
fn counting_statement() -> String {
    let indexes = [ListIndex::Running, ListIndex::Pending, ListIndex::Paused, ListIndex::Ended];
    let jobs =
        indexes.map(|index| format!("SELECT job_no FROM (\n{}) AS f", index.jobs(statement)));
    let scanned = indexes.map(|index| match index.scanned(statement) {
        Some(scanned) => format!("(\n{scanned})"),
        None => format!("(SELECT count(*) FROM (\n{}) AS f)", index.jobs(statement)),
    });
    let counts = sql!("job_counts");
    format!(
        "WITH scanned (n) AS MATERIALIZED (SELECT greatest({})), c AS MATERIALIZED (\n{})
         SELECT l.n > {LIST_SCAN_MAX}, p.* FROM scanned l LEFT JOIN (\n{counts}) AS p ON true",
        scanned.join(", "),
        jobs.join(" UNION "),
    )
}

pub(super) async fn all_job_counts(connection: &Connection) -> Tried<JobCounts> {
    let bound = i64::from(LIST_SCAN_MAX) + 1;
    let (due, scanned) = all_due(connection, bound).await?;
    let row = connection.row(sql!("all_job_counts"), &[&bound]).await?;
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
    Ok(counts.with_rest(over(4).max(scanned)))
}

/// Counts the due jobs of all tenants. Also returns how many jobs were read to count them.
async fn all_due(connection: &Connection, bound: i64) -> Tried<(u64, u64)> {
    let (mut due, mut scanned) = (0, 0);
    for row in &connection.rows(sql!("all_job_counts_due"), &[&bound]).await? {
        let jobs = count(row, 1)?;
        let is_held =
            held_job(row, 2, 5)?.is_some_and(|held| held.status() == JobStatus::Scheduled);
        scanned += jobs;
        due += if get(row, 0)? && !is_held { jobs } else { 0 };
    }
    Ok((due, scanned))
}

pub(super) fn read_load(row: &Row) -> Tried<SlotLoad> {
    let jobs = u32::try_from(count(row, 0)?).unwrap_or(u32::MAX);
    Ok(SlotLoad { jobs, counted_all: get(row, 1)? })
}
