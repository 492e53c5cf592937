//! Reading jobs.

use evenkeel_core::{About, AttemptKey, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    Job, JobState, StoreError, attempt_key_from_columns, from_code, outcome_from_code,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{array, count, get, history, maybe_time, time};

pub(crate) async fn get_job(connection: &Connection, id: Uuid, tenant: i32) -> Tried<Option<Job>> {
    Ok(get_jobs(connection, &[id], tenant).await?.pop())
}

/// Returns the job and the database time at which it was read.
pub(super) async fn get_with_now(
    connection: &Connection,
    id: Uuid,
    tenant: i32,
) -> Tried<Option<(Job, Timestamp)>> {
    let Some(row) = connection.maybe_row(sql!("get_with_now"), &[&id, &tenant]).await? else {
        return Ok(None);
    };
    let (now, is_all) = (time(&row, "now")?, get::<bool>(&row, "is_all")?);
    let job = if is_all { Some(read_job(&row)?) } else { get_job(connection, id, tenant).await? };
    Ok(job.map(|job| (job, now)))
}

pub(crate) async fn get_jobs(
    connection: &Connection,
    ids: &[Uuid],
    tenant: i32,
) -> Tried<Vec<Job>> {
    connection.rows(sql!("get_jobs"), &[&ids, &tenant]).await?.iter().map(read_job).collect()
}

pub(super) fn read_job(row: &Row) -> Tried<Job> {
    let (no, id) = (JobNo(get(row, "job_no")?), JobId(get(row, "id")?));
    let corrupt =
        |column, error: serde_json::Error| StoreError::corrupt(format!("job {id}"), column, error);
    let state = from_code(&JobState::ALL, get(row, "state")?, format_args!("job {id}"), "state")?;
    let running = running(row, no)?;
    let waiting = key_of(no, &array(row, "newest_waiting")?)?;
    let newest = running.map(|(key, _)| key).max(waiting);
    let updated_at = time(row, "updated_at")?;
    Ok(Job {
        no,
        id,
        number: get(row, "number")?,
        tenant: TenantNo(get(row, "tenant_no")?),
        about: About {
            target: get(row, "target_no")?,
            ..serde_json::from_str(get(row, "about")?).map_err(|error| corrupt("about", error))?
        },
        definition: serde_json::from_str(get(row, "definition")?)
            .map_err(|error| corrupt("definition", error))?,
        state,
        generation: get(row, "generation")?,
        created_at: time(row, "created_at")?,
        updated_at,
        next_at: maybe_time(row, "next_at")?,
        last_fired_at: maybe_time(row, "last_fired_at")?,
        live: get::<i32>(row, "live")?.max(0).cast_unsigned(),
        waiting: u32::try_from(count(row, "waiting")?).unwrap_or(u32::MAX),
        executions: count(row, "executions")?,
        last_outcome: get::<Option<i16>>(row, "last_status")?.and_then(outcome_from_code),
        history: history(row)?,
        since: time(row, "since")?,
        fired: count(row, "fired")?,
        running_since: running.map(|(_, since)| since),
        running: running.map(|(key, _)| key),
        retry_count: newest.map_or(0, |key| key.attempt.0),
        stopped_at: match state {
            JobState::Active => None,
            JobState::Paused => maybe_time(row, "stopped_at")?,
            // Cancelled and deleted jobs no longer change, so their last change is when they
            // stopped.
            JobState::Cancelled | JobState::Deleted => Some(updated_at),
        },
        succeeded_runs: u64::from(get::<i32>(row, "succeeded_runs")?.max(0).cast_unsigned()),
        failed_runs: u64::from(get::<i32>(row, "failed_runs")?.max(0).cast_unsigned()),
        last_error: get(row, "last_error")?,
        note: get(row, "note")?,
    })
}

/// Reads the running attempt of a job and its start time.
fn running(row: &Row, no: JobNo) -> Tried<Option<(AttemptKey, Timestamp)>> {
    let columns: Option<Vec<i64>> = get(row, "running")?;
    let Some([since, key @ ..]) = columns.as_deref() else { return Ok(None) };
    Ok(key_of(no, key)?.map(|key| (key, Timestamp::from_micros(*since))))
}

fn key_of(no: JobNo, columns: &[i64]) -> Tried<Option<AttemptKey>> {
    let [at, sequence, attempt] = columns else { return Ok(None) };
    let sequence = i32::try_from(*sequence).unwrap_or(i32::MAX);
    let attempt = i16::try_from(*attempt).unwrap_or(i16::MAX);
    Ok(Some(attempt_key_from_columns(*at, no.0, sequence, attempt)?))
}
