//! Attempts as people see them.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::lease::Fence;
use evenkeel_core::run::AttemptStatus;
use evenkeel_core::{AttemptKey, JobId, NodeNo, Progress};
use evenkeel_store::{Attempt, Results, Scope, StoreError, skip_reason_from_code};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{attempt, get, key, maybe_time, sequence, span};
use crate::error::Tried;

pub(super) async fn get_run(
    store: &PostgresStore,
    scope: &Scope,
    key: AttemptKey,
) -> Result<Option<Attempt>, StoreError> {
    store
        .api
        .run((scope.tenant.0, key), |connection, args| async move {
            let (tenant, key) = &*args;
            let row = connection
                .maybe_row(
                    sql!("get_attempt"),
                    &[
                        tenant,
                        &key.scheduled_at.as_micros(),
                        &key.job_no.0,
                        &sequence(key.sequence),
                        &attempt(*key),
                    ],
                )
                .await?;
            let Some(row) = row else { return Ok(None) };
            Ok(Some(Attempt {
                progress: read_progress(&row)?,
                log: get(&row, 23)?,
                ..read_run(&row)?
            }))
        })
        .await
}

pub(super) fn read_run(row: &Row) -> Tried<Attempt> {
    let key = key(row, 0)?;
    let status: i16 = get(row, 5)?;
    let node: Option<i32> = get(row, 8)?;
    let node_name: Option<String> = get(row, 9)?;
    Ok(Attempt {
        key,
        job: JobId(get(row, 4)?),
        status: AttemptStatus::from_code(status)
            .ok_or_else(|| StoreError::corrupt(key, "status", format!("{status} is unknown")))?,
        fence: Fence(get::<i32>(row, 6)?.cast_unsigned()),
        crashes: get::<i16>(row, 7)?.max(0).cast_unsigned(),
        node: node.map(NodeNo).zip(node_name),
        number: get::<Option<i64>>(row, 10)?.map(|number| number.max(0).cast_unsigned()),
        started_at: maybe_time(row, 11)?,
        finished_at: maybe_time(row, 12)?,
        results: Results {
            error: get(row, 13)?,
            output: get(row, 14)?,
            items_crawled: get(row, 15)?,
            items_indexed: get(row, 16)?,
            cpu_time: get::<Option<i64>>(row, 17)?.map(span),
            memory_peak_kb: get(row, 18)?,
        },
        skipped: read_skipped(row, key)?,
        progress: None,
        log: None,
    })
}

fn read_progress(row: &Row) -> Tried<Option<Progress>> {
    let Some(text) = get::<Option<&str>>(row, 22)? else { return Ok(None) };
    let key = key(row, 0)?;
    let read = serde_json::from_str(text);
    Ok(read.map_err(|cause| StoreError::corrupt(key, "progress", cause))?)
}

fn read_skipped(row: &Row, key: AttemptKey) -> Tried<Option<SkippedTimes>> {
    let to = maybe_time(row, 19)?;
    let count: Option<i64> = get(row, 20)?;
    let reason: Option<i16> = get(row, 21)?;
    let (Some(to), Some(count), Some(code)) = (to, count, reason) else { return Ok(None) };
    let reason = skip_reason_from_code(code)
        .ok_or_else(|| StoreError::corrupt(key, "skip_reason", format!("{code} is unknown")))?;
    let count = count.max(0).cast_unsigned();
    Ok(Some(SkippedTimes { from: key.scheduled_at, to, count, reason }))
}
