//! Counts of jobs by status.

use evenkeel_core::status::JobStatus;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{HeldJob, JobCounts, JobFilter, JobSort, LIST_SCAN_MAX, ListIndex, ListQuery};
use rusqlite::Connection;

use super::list::{List, held_job, total};
use crate::connection::{RunPrepared, RunSql, system_time};
use crate::error::Answer;
use crate::rows::count;
use crate::sql::statement;

/// Counts the jobs of a tenant. The number of jobs that wait for their next run is the total minus
/// the jobs in all other states.
pub(crate) fn job_counts(connection: &Connection, tenant: TenantNo) -> Answer<JobCounts> {
    let (filter, now) = (JobFilter::default(), system_time());
    let query = ListQuery { tenant, filter: &filter, sort: JobSort::default(), now };
    let list = List { connection, query };
    let mut counts = JobCounts { total: total(connection, tenant)?, ..JobCounts::default() };
    let mut jobs = Vec::new();
    for index in [ListIndex::Running, ListIndex::Pending, ListIndex::Paused, ListIndex::Ended] {
        counts.is_estimate |= list.scanned(index)? > u64::from(LIST_SCAN_MAX);
        jobs.push(format!("SELECT job_no FROM ({})", index.jobs(statement)));
    }
    let jobs = jobs.join(" UNION ");
    let sql = format!("WITH c AS MATERIALIZED (\n{jobs})\n{}", sql!("job_counts"));
    let mut statement = list.prepare(&sql, &[])?;
    let mut rows = statement.raw_query();
    let mut others = 0;
    while let Some(row) = rows.next()? {
        let code: usize = row.get("status")?;
        let jobs = count(row, "jobs")?;
        let held = held_job(row, now)?.map(|held| held.status());
        let status = held.or(JobStatus::ALL.get(code).copied());
        if let Some(status) = status.filter(|status| *status != JobStatus::Scheduled) {
            *counts.of_mut(status) += jobs;
            others += jobs;
        }
    }
    counts.scheduled = counts.total.saturating_sub(others);
    Ok(counts)
}

/// Counts the due jobs of all tenants. Also returns how many jobs were read to count them.
fn all_due(connection: &Connection, now: Timestamp) -> Answer<(u64, u64)> {
    let mut statement = connection.prepare_cached(sql!("all_job_counts_due"))?;
    let mut rows = statement.select(&[&(LIST_SCAN_MAX + 1), &now])?;
    let is_held = |held: HeldJob| held.status() == JobStatus::Scheduled;
    let (mut due, mut scanned) = (0, 0);
    while let Some(row) = rows.next()? {
        let jobs = count(row, "jobs")?;
        scanned += jobs;
        if row.get("is_due")? && !held_job(row, now)?.is_some_and(is_held) {
            due += jobs;
        }
    }
    Ok((due, scanned))
}

pub(crate) fn all_job_counts(connection: &Connection) -> Answer<JobCounts> {
    let (due, scanned) = all_due(connection, system_time())?;
    connection.row(sql!("all_job_counts"), &[&(LIST_SCAN_MAX + 1)], |row| {
        let count = |column: usize| count(row, column);
        let counts = JobCounts {
            total: count(0)?,
            paused: count(1)?,
            cancelled: count(2)? + count(7)?,
            running: count(3)?,
            pending: count(4)? + count(8)? + due,
            completed: count(5)?,
            failed: count(6)?,
            ..JobCounts::default()
        };
        Ok(counts.with_rest(count(9)?.max(scanned)))
    })
}
