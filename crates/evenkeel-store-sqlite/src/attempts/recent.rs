//! Reads the newest runs of many jobs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{JobId, TenantNo};
use evenkeel_store::{RECENT_RUNS_MAX, RecentRun, StoreError, sql_time};
use rusqlite::{Connection, Row};

use crate::connection::RunSql;
use crate::error::Answer;
use crate::rows::{job_id, json, key_from};

fn recent_run_from(row: &Row<'_>) -> Answer<RecentRun> {
    let key = key_from(row)?;
    let status = AttemptStatus::from_code(row.get("newest_status")?)
        .ok_or_else(|| StoreError::corrupt(key, "status", "unknown"))?;
    let finished_at = sql_time(row.get("finished_at")?);
    Ok(RecentRun {
        job: job_id(row.get("id")?)?,
        key,
        status,
        started_at: sql_time(row.get("started_at")?),
        // The newest attempt in the history may be older than the attempt that waits.
        finished_at: finished_at.filter(|_| status != AttemptStatus::Pending),
    })
}

pub(super) fn recent_runs(
    connection: &Connection,
    tenant: TenantNo,
    jobs: &[JobId],
    each: u32,
) -> Answer<Vec<RecentRun>> {
    let (jobs, each) = (json(&jobs)?, each.min(RECENT_RUNS_MAX));
    connection.rows(sql!("recent_runs"), &[&tenant, &jobs, &each], recent_run_from)
}
