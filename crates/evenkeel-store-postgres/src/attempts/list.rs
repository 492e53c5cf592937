//! Reads single attempts and lists of attempts.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, JobId, NodeNo, Progress};
use evenkeel_store::{
    Attempt, Page, PageRequest, Results, StoreError, from_code, skip_reason_from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{attempt, count, get, key, key_columns, maybe_time, page_limit, sequence, span};

/// Attempts of a job are counted exactly up to this number.
const JOB_COUNT_MAX: i64 = 1_000;
/// Attempts of a tenant are counted exactly up to this number.
const TENANT_COUNT_MAX: i64 = 10_000;

/// Returns the number of rows up to the end of the list page, plus one row that shows whether there
/// is another page.
fn reach(page: &PageRequest<AttemptKey>) -> i64 {
    i64::from(page.offset) + page_limit(page)
}

pub(super) async fn of_tenant(
    connection: &Connection,
    tenant: i32,
    page: PageRequest<AttemptKey>,
) -> Tried<Page<Attempt, AttemptKey>> {
    // Without a cursor, the list starts at a key that sorts after every attempt key.
    let (at, job, bits, nth) = page.after.map_or((i64::MAX, 0, 0, 0), key_columns);
    let reach = reach(&page);
    let (rows, total) = try_join(
        connection.rows(sql!("list_attempts"), &[&tenant, &at, &job, &bits, &nth, &reach]),
        connection.row(sql!("list_attempts_count"), &[&tenant, &TENANT_COUNT_MAX]),
    )
    .await?;
    let found = rows.iter().map(read_attempt).collect::<Tried<Vec<Attempt>>>()?;
    let total = count(&total, 0)?;
    Ok(cut(found, &page, total, total >= TENANT_COUNT_MAX.cast_unsigned()))
}

pub(super) async fn of_job(
    connection: &Connection,
    tenant: i32,
    job: JobId,
    page: PageRequest<AttemptKey>,
) -> Tried<Page<Attempt, AttemptKey>> {
    let row = connection.maybe_row(sql!("list_attempts_job"), &[&job.0, &tenant]).await?;
    let Some(row) = row else { return Ok(cut(Vec::new(), &page, 0, false)) };
    let (job_no, executions): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let reach = reach(&page);
    let found = walk(connection, job_no, page.after, reach).await?;
    if page.after.is_none() && usize::try_from(reach).is_ok_and(|reach| found.len() < reach) {
        let total = found.len() as u64;
        return Ok(cut(found, &page, total, false));
    }
    let counted = if executions <= JOB_COUNT_MAX {
        walk(connection, job_no, None, JOB_COUNT_MAX + 1).await?.len() as u64
    } else {
        u64::MAX
    };
    let is_estimate = counted > JOB_COUNT_MAX.cast_unsigned();
    let total = if is_estimate { executions.cast_unsigned() } else { counted };
    Ok(cut(found, &page, total, is_estimate))
}

/// Reads a job's attempts that follow a given attempt, newest run first.
async fn walk(
    connection: &Connection,
    job_no: i64,
    after: Option<AttemptKey>,
    limit: i64,
) -> Tried<Vec<Attempt>> {
    let from_at = after.map(|key| key.scheduled_at.as_micros());
    let from_sequence = after.map(|key| sequence(key.sequence));
    let before_attempt = after.map_or(i16::MAX, attempt);
    let params: Params<'_> = &[&job_no, &from_at, &from_sequence, &before_attempt, &limit];
    let rows = connection.rows(sql!("list_attempts_of_job"), params).await?;
    let mut found = rows.iter().map(read_attempt).collect::<Tried<Vec<Attempt>>>()?;
    if usize::try_from(limit).is_ok_and(|limit| found.len() < limit) {
        // Links between runs end where older history was pruned. Pruning keeps two older attempts
        // of a job, its newest success and its newest failure.
        let oldest = found.iter().map(|run| run.key.scheduled_at.as_micros()).chain(from_at).min();
        let params: Params<'_> = &[&job_no, &oldest.unwrap_or(i64::MAX)];
        for row in &connection.rows(sql!("list_attempts_kept"), params).await? {
            found.push(read_attempt(row)?);
        }
    }
    Ok(found)
}

fn cut(
    found: Vec<Attempt>,
    page: &PageRequest<AttemptKey>,
    total: u64,
    is_estimate: bool,
) -> Page<Attempt, AttemptKey> {
    let mut rest = found.into_iter().skip(page.offset as usize);
    let items: Vec<Attempt> = rest.by_ref().take(page.limit as usize).collect();
    let next = rest.next().and_then(|_| items.last().map(|run| run.key));
    Page { items, total, total_is_estimate: is_estimate, next }
}

pub(super) fn read_details(row: &Row) -> Tried<Attempt> {
    Ok(Attempt { progress: read_progress(row)?, log: get(row, "log")?, ..read_attempt(row)? })
}

pub(super) fn read_attempt(row: &Row) -> Tried<Attempt> {
    let key = key(row)?;
    let node: Option<i32> = get(row, "node_no")?;
    let node_name: Option<String> = get(row, "node_name")?;
    Ok(Attempt {
        key,
        job: JobId(get(row, "job_id")?),
        status: from_code(&AttemptStatus::ALL, get(row, "status")?, key, "status")?,
        fence: Fence(get::<i32>(row, "fence")?.cast_unsigned()),
        crashes: get::<i16>(row, "crashes")?.max(0).cast_unsigned(),
        node: node.map(NodeNo).zip(node_name),
        number: get::<Option<i64>>(row, "number")?.map(|number| number.max(0).cast_unsigned()),
        started_at: maybe_time(row, "started_at")?,
        finished_at: maybe_time(row, "finished_at")?,
        results: Results {
            error: get(row, "error")?,
            output: get(row, "output")?,
            items_crawled: get(row, "items_crawled")?,
            items_indexed: get(row, "items_indexed")?,
            cpu_time: get::<Option<i64>>(row, "cpu_us")?.map(span),
            memory_peak_kb: get(row, "memory_kb")?,
        },
        skipped: read_skipped(row, key)?,
        progress: None,
        log: None,
    })
}

fn read_progress(row: &Row) -> Tried<Option<Progress>> {
    let Some(text) = get::<Option<&str>>(row, "progress")? else { return Ok(None) };
    let key = key(row)?;
    let read = serde_json::from_str(text);
    Ok(read.map_err(|cause| StoreError::corrupt(key, "progress", cause))?)
}

fn read_skipped(row: &Row, key: AttemptKey) -> Tried<Option<SkippedTimes>> {
    let to = maybe_time(row, "skipped_to")?;
    let count: Option<i64> = get(row, "skipped_count")?;
    let reason: Option<i16> = get(row, "skip_reason")?;
    let (Some(to), Some(count), Some(code)) = (to, count, reason) else { return Ok(None) };
    let reason = skip_reason_from_code(code)
        .ok_or_else(|| StoreError::corrupt(key, "skip_reason", format!("unknown code {code}")))?;
    let count = count.max(0).cast_unsigned();
    Ok(Some(SkippedTimes { from: key.scheduled_at, to, count, reason }))
}
