//! Jobs from their columns.

use evenkeel_core::{JobId, JobNo, TenantNo};
use evenkeel_store::{Job, Standing, StoreError, outcome_from_code};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::columns::{count, get, history, maybe_time, time};
use crate::error::Tried;
use crate::pool::Connection;

pub(super) async fn get_job(connection: &Connection, id: Uuid, tenant: i32) -> Tried<Option<Job>> {
    let sql = include_str!("../../queries/get_job.sql");
    connection.maybe_row(sql, &[&id, &tenant]).await?.as_ref().map(read_job).transpose()
}

pub(super) fn read_job(row: &Row) -> Tried<Job> {
    let id = JobId(get(row, 1)?);
    let corrupt =
        |column, error: serde_json::Error| StoreError::corrupt(format!("job {id}"), column, error);
    let standing: i16 = get(row, 5)?;
    let known = usize::try_from(standing).ok().and_then(|code| Standing::ALL.get(code)).copied();
    Ok(Job {
        no: JobNo(get(row, 0)?),
        id,
        tenant: TenantNo(get(row, 2)?),
        about: serde_json::from_str(get(row, 3)?).map_err(|error| corrupt("about", error))?,
        definition: serde_json::from_str(get(row, 4)?)
            .map_err(|error| corrupt("definition", error))?,
        standing: known.ok_or_else(|| {
            StoreError::corrupt(format!("job {id}"), "standing", format!("{standing} is unknown"))
        })?,
        generation: get(row, 6)?,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        next_at: maybe_time(row, 9)?,
        last_fired_at: maybe_time(row, 10)?,
        live: get::<i32>(row, 11)?.max(0).cast_unsigned(),
        waiting: u32::try_from(count(row, 12)?).unwrap_or(u32::MAX),
        executions: count(row, 13)?,
        last_outcome: get::<Option<i16>>(row, 14)?.and_then(outcome_from_code),
        history: history(row, 15)?,
        since: time(row, 22)?,
        fired: count(row, 23)?,
        running_since: maybe_time(row, 24)?,
        running: None,
        retry_count: 0,
        stopped_at: None,
        good_runs: 0,
        bad_runs: 0,
        last_error: None,
    })
}
