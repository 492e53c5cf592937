//! Jobs from their columns.

use evenkeel_core::{About, AttemptKey, JobId, JobNo, TenantNo, Timestamp};
use evenkeel_store::{
    Job, JobState, NamedJob, StoreError, attempt_key_from_columns, outcome_from_code,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, history, maybe_time, time};

pub(crate) async fn get_job(connection: &Connection, id: Uuid, tenant: i32) -> Tried<Option<Job>> {
    Ok(get_jobs(connection, &[id], tenant).await?.pop())
}

/// The job, and what the database's clock said when it was looked for.
pub(super) async fn get_with_now(
    connection: &Connection,
    id: Uuid,
    tenant: i32,
) -> Tried<Option<(Job, Timestamp)>> {
    let sql = sql!("get_with_now");
    let Some(row) = connection.maybe_row(sql, &[&id, &tenant]).await? else { return Ok(None) };
    let (now, is_all) = (time(&row, 33)?, get::<bool>(&row, 34)?);
    let job = if is_all { Some(read_job(&row)?) } else { get_job(connection, id, tenant).await? };
    Ok(job.map(|job| (job, now)))
}

pub(crate) async fn get_jobs(
    connection: &Connection,
    ids: &[Uuid],
    tenant: i32,
) -> Tried<Vec<Job>> {
    let sql = sql!("get_jobs");
    connection.rows(sql, &[&ids, &tenant]).await?.iter().map(read_job).collect()
}

pub(super) async fn ids_of_numbers(
    connection: &Connection,
    numbers: &[i64],
    tenant: i32,
) -> Tried<Vec<Option<JobId>>> {
    let sql = sql!("ids_of_numbers");
    let rows = connection.rows(sql, &[&tenant, &numbers]).await?;
    rows.iter().map(|row| Ok(get::<Option<Uuid>>(row, 0)?.map(JobId))).collect()
}

pub(super) async fn jobs_named(
    connection: &Connection,
    name: &str,
    limit: i64,
    tenant: i32,
) -> Tried<Vec<NamedJob>> {
    // PostgreSQL has no text with a NUL character, so no job has such a name.
    if name.contains('\0') {
        return Ok(Vec::new());
    }
    let sql = sql!("jobs_named");
    let rows = connection.rows(sql, &[&tenant, &name, &limit]).await?;
    let named = |row: &Row| Ok(NamedJob { id: JobId(get(row, 0)?), configuration: get(row, 1)? });
    rows.iter().map(named).collect()
}

pub(super) fn read_job(row: &Row) -> Tried<Job> {
    let (no, id) = (JobNo(get(row, 0)?), JobId(get(row, 1)?));
    let corrupt =
        |column, error: serde_json::Error| StoreError::corrupt(format!("job {id}"), column, error);
    let state = state(row, id)?;
    let running = running(row, no)?;
    let waiting = newest_waiting(row, no)?;
    let newest = running.map(|(key, _)| key).max(waiting);
    let updated_at = time(row, 8)?;
    Ok(Job {
        no,
        id,
        number: get(row, 30)?,
        tenant: TenantNo(get(row, 2)?),
        about: About {
            target: get(row, 31)?,
            ..serde_json::from_str(get(row, 3)?).map_err(|error| corrupt("about", error))?
        },
        definition: serde_json::from_str(get(row, 4)?)
            .map_err(|error| corrupt("definition", error))?,
        state,
        generation: get(row, 6)?,
        created_at: time(row, 7)?,
        updated_at,
        next_at: maybe_time(row, 9)?,
        last_fired_at: maybe_time(row, 10)?,
        live: get::<i32>(row, 11)?.max(0).cast_unsigned(),
        waiting: u32::try_from(count(row, 12)?).unwrap_or(u32::MAX),
        executions: count(row, 13)?,
        last_outcome: get::<Option<i16>>(row, 14)?.and_then(outcome_from_code),
        history: history(row, 15)?,
        since: time(row, 22)?,
        fired: count(row, 23)?,
        running_since: running.map(|(_, since)| since),
        running: running.map(|(key, _)| key),
        retry_count: newest.map_or(0, |key| key.attempt.0),
        stopped_at: match state {
            JobState::Active => None,
            JobState::Paused => maybe_time(row, 26)?,
            // Nothing changes it afterwards.
            JobState::Cancelled | JobState::Deleted => Some(updated_at),
        },
        good_runs: u64::from(get::<i32>(row, 27)?.max(0).cast_unsigned()),
        bad_runs: u64::from(get::<i32>(row, 28)?.max(0).cast_unsigned()),
        last_error: get(row, 29)?,
        note: get(row, 32)?,
    })
}

fn state(row: &Row, id: JobId) -> Result<JobState, StoreError> {
    let code: i16 = get(row, 5)?;
    let known = usize::try_from(code).ok().and_then(|code| JobState::ALL.get(code)).copied();
    known.ok_or_else(|| {
        StoreError::corrupt(format!("job {id}"), "standing", format!("{code} is unknown"))
    })
}

/// What runs, and since when.
fn running(row: &Row, no: JobNo) -> Result<Option<(AttemptKey, Timestamp)>, StoreError> {
    let columns: Option<Vec<i64>> = get(row, 24)?;
    let Some([since, key @ ..]) = columns.as_deref() else { return Ok(None) };
    Ok(key_of(no, key)?.map(|key| (key, Timestamp::from_micros(*since))))
}

fn newest_waiting(row: &Row, no: JobNo) -> Result<Option<AttemptKey>, StoreError> {
    let columns: Option<Vec<i64>> = get(row, 25)?;
    columns.map_or(Ok(None), |columns| key_of(no, &columns))
}

/// Time, sequence and attempt of a run of the job.
fn key_of(no: JobNo, columns: &[i64]) -> Result<Option<AttemptKey>, StoreError> {
    let [at, sequence, attempt] = columns else { return Ok(None) };
    let sequence = i32::try_from(*sequence).unwrap_or(i32::MAX);
    let attempt = i16::try_from(*attempt).unwrap_or(i16::MAX);
    attempt_key_from_columns(*at, no.0, sequence, attempt).map(Some)
}
