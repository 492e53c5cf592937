//! Reads the newest runs of many jobs.

use evenkeel_core::JobId;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{RecentRun, from_code};
use tokio_postgres::Row;

use crate::error::Tried;
use crate::rows::{get, key, maybe_time};

pub(super) fn read_recent_run(row: &Row) -> Tried<RecentRun> {
    let key = key(row)?;
    Ok(RecentRun {
        job: JobId(get(row, "job_id")?),
        key,
        status: from_code(&AttemptStatus::ALL, get(row, "status")?, key, "status")?,
        started_at: maybe_time(row, "started_at")?,
        finished_at: maybe_time(row, "finished_at")?,
    })
}
