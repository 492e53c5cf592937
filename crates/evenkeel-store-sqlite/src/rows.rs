//! Converts rows to the types of the store interface and back.

use std::fmt::Display;

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{
    About, AttemptKey, History, JobId, JobNo, NodeNo, Sequence, Span, TenantNo, Timestamp,
};
use evenkeel_store::{
    Attempt, DueJob, Job, JobState, LAST_ERROR_MAX, Page, QueueEntry, Results, RunLink, StoreError,
    attempt_key_from_columns, from_code, outcome_from_code, skip_reason_from_code, sql_time,
};
use rusqlite::{Connection, Row, RowIndex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;

/// A key that sorts before the key of every attempt.
pub(crate) const FIRST_KEY: AttemptKey =
    AttemptKey::regular(JobNo(i64::MIN), Timestamp::from_micros(i64::MIN));

pub(crate) fn count(row: &Row<'_>, column: impl RowIndex) -> Answer<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

pub(crate) fn span(micros: Option<i64>) -> Option<Span> {
    micros.map(|micros| Span::from_micros(micros.unsigned_abs()))
}

pub(crate) fn link(at: Option<i64>, sequence: Option<u32>) -> Option<RunLink> {
    let sequence = Sequence::from_bits(sequence?)?;
    Some(RunLink { scheduled_at: Timestamp::from_micros(at?), sequence })
}

pub(crate) fn head_from(row: &Row<'_>) -> rusqlite::Result<Option<RunLink>> {
    Ok(link(row.get("head_at")?, row.get("head_sequence")?))
}

pub(crate) fn prev_from(row: &Row<'_>) -> rusqlite::Result<Option<RunLink>> {
    Ok(link(row.get("prev_at")?, row.get("prev_sequence")?))
}

pub(crate) fn key_from(row: &Row<'_>) -> Answer<AttemptKey> {
    Ok(attempt_key_from_columns(
        row.get("scheduled_at")?,
        row.get("job_no")?,
        row.get("sequence")?,
        row.get("attempt")?,
    )?)
}

/// Reads the key of an attempt of the job's run `run`.
pub(crate) fn key_in_run(row: &Row<'_>, job: JobNo, run: RunLink) -> Answer<AttemptKey> {
    let (at, sequence) = (run.scheduled_at.as_micros(), run.sequence.bits().cast_signed());
    Ok(attempt_key_from_columns(at, job.0, sequence, row.get("attempt")?)?)
}

/// Makes a list page of the items that a statement read with `limit + 1`. The extra item only shows
/// that there is a next page. `total` is the number of all items, and whether it is an estimate.
pub(crate) fn page_of<T, C>(
    mut items: Vec<T>,
    limit: u32,
    (total, total_is_estimate): (u64, bool),
    cursor: impl Fn(&T) -> C,
) -> Page<T, C> {
    let has_more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = items.last().filter(|_| has_more).map(cursor);
    Page { items, total, total_is_estimate, next }
}

/// Returns the total of a list whose items were counted only up to `most + 1`.
pub(crate) fn capped_total(counted: u64, most: u64) -> (u64, bool) {
    (counted.min(most), counted > most)
}

/// Returns the item after which the next step of a scan starts, or `None` if the scan has ended
/// because a step found fewer than `limit` items.
pub(crate) fn next_after<T>(found: &[T], limit: u32) -> Option<&T> {
    found.last().filter(|_| found.len() == limit as usize)
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Refused(Box::new(cause)))
}

/// Reads a column with JSON; `what` names the row in errors.
pub(crate) fn read_json<T: DeserializeOwned>(
    row: &Row<'_>,
    what: impl Display,
    column: &'static str,
) -> Answer<T> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(serde_json::from_str(text).map_err(|cause| StoreError::corrupt(what, column, cause))?)
}

/// Reads a row of `job_row`.
pub(crate) fn job_from(connection: &Connection, row: &Row<'_>) -> Answer<Job> {
    let id = job_id(row.get("id")?)?;
    let state = from_code(&JobState::ALL, row.get("state")?, format_args!("job {id}"), "state")?;
    let last_status: Option<i16> = row.get("last_status")?;
    let no = JobNo(row.get("job_no")?);
    let live = row.get("live")?;
    let running = newest_running(connection, no, live, head_from(row)?)?;
    let updated_at = Timestamp::from_micros(row.get("updated_at")?);
    Ok(Job {
        no,
        id,
        number: row.get("number")?,
        tenant: TenantNo(row.get("tenant_no")?),
        about: About {
            target: row.get("target_no")?,
            ..read_json(row, format_args!("job {id}"), "about")?
        },
        definition: read_json(row, format_args!("job {id}"), "definition")?,
        state,
        generation: row.get("generation")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        updated_at,
        next_at: sql_time(row.get("next_at")?),
        last_fired_at: sql_time(row.get("last_fired_at")?),
        live,
        waiting: row.get("waiting")?,
        executions: count(row, "executions")?,
        last_outcome: last_status.and_then(outcome_from_code),
        history: history_from(row)?,
        since: Timestamp::from_micros(row.get("since")?),
        fired: count(row, "fired")?,
        running_since: running.map(|(_, since)| since),
        running: running.map(|(key, _)| key),
        retry_count: retry_count(connection, no, row, running.map(|(key, _)| key))?,
        stopped_at: match state {
            JobState::Active => None,
            JobState::Paused => sql_time(row.get("stopped_at")?),
            // Cancelled and deleted jobs no longer change, so their last change is when they
            // stopped.
            JobState::Cancelled | JobState::Deleted => Some(updated_at),
        },
        succeeded_runs: count(row, "succeeded_runs")?,
        failed_runs: count(row, "failed_runs")?,
        last_error: last_error(connection, no, row)?,
        note: row.get("note")?,
    })
}

/// Returns the number of retries of the newest unfinished run.
fn retry_count(
    connection: &Connection,
    job: JobNo,
    row: &Row<'_>,
    running: Option<AttemptKey>,
) -> Answer<u16> {
    let mut newest = running;
    if row.get::<_, u32>("waiting")? > 0 {
        newest = newest.max(newest_waiting(connection, job)?);
    }
    Ok(newest.map_or(0, |key| key.attempt.0))
}

pub(crate) fn newest_waiting(connection: &Connection, job: JobNo) -> Answer<Option<AttemptKey>> {
    connection.maybe_row(sql!("get_jobs_newest_waiting"), &[&job], key_from)
}

fn last_error(connection: &Connection, job: JobNo, row: &Row<'_>) -> Answer<Option<String>> {
    let outcome = row.get::<_, Option<i16>>("last_status")?.and_then(outcome_from_code);
    let failed_at: Option<i64> = row.get("failed_at")?;
    let Some(failed_at) = failed_at.filter(|_| outcome.is_some_and(Outcome::is_failure)) else {
        return Ok(None);
    };
    let found: Option<Option<String>> = connection
        .maybe_value(sql!("get_jobs_last_error"), &[&failed_at, &job, &LAST_ERROR_MAX])?;
    Ok(found.flatten())
}

/// Maximum number of runs that are skipped in the search for a running attempt.
const PASSED_MAX: u32 = 1_000;

/// Returns the newest attempt of the job's newest run and its start time, if the attempt is
/// running. Skips records of skipped runs and attempts that were never claimed.
pub(crate) fn newest_running(
    connection: &Connection,
    job: JobNo,
    live: u32,
    head: Option<RunLink>,
) -> Answer<Option<(AttemptKey, Timestamp)>> {
    if live == 0 {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(sql!("get_jobs_running"))?;
    let mut next = head;
    for _ in 0..PASSED_MAX {
        let Some(run) = next else { break };
        let mut rows = statement.select(&[&run.scheduled_at, &job, &run.sequence])?;
        let Some(newest) = rows.next()? else { break };
        let status: i16 = newest.get("status")?;
        if status == AttemptStatus::Running.code() {
            let key = key_in_run(newest, job, run)?;
            return Ok(sql_time(newest.get("started_at")?).map(|since| (key, since)));
        }
        if status != AttemptStatus::Skipped.code() {
            break;
        }
        next = prev_from(newest)?;
    }
    Ok(None)
}

pub(crate) fn history_from(row: &Row<'_>) -> Answer<History> {
    Ok(History {
        last_start_at: sql_time(row.get("last_start_at")?),
        last_end_at: sql_time(row.get("last_end_at")?),
        last_good_start_at: sql_time(row.get("last_good_start_at")?),
        last_good_end_at: sql_time(row.get("last_good_end_at")?),
        consecutive_failures: row.get("failures")?,
        average_good_duration: span(row.get("average_us")?),
        duration_variance: row.get("variance")?,
    })
}

/// The columns of a job from which a search for its runs starts.
pub(crate) struct JobHead {
    pub(crate) next_at: Option<Timestamp>,
    pub(crate) live: u32,
    /// The newest run.
    pub(crate) head: Option<RunLink>,
}

pub(crate) fn job_head(connection: &Connection, job: JobNo) -> Answer<Option<JobHead>> {
    connection.maybe_row(sql!("find_job_head"), &[&job], |row| {
        let next_at = sql_time(row.get("next_at")?);
        Ok(JobHead { next_at, live: row.get("live")?, head: head_from(row)? })
    })
}

pub(crate) fn find_job_no(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
) -> Answer<Option<JobNo>> {
    connection.maybe_row(sql!("find_job_no"), &[&tenant, &job], |row| Ok(JobNo(row.get(0)?)))
}

/// Returns the names as JSON, or `None` if there are none.
pub(crate) fn name_list(names: &[String]) -> Result<Option<String>, StoreError> {
    (!names.is_empty()).then(|| json(&names)).transpose()
}

pub(crate) fn job_id(bytes: Vec<u8>) -> Result<JobId, StoreError> {
    let uuid = Uuid::from_slice(&bytes).map_err(|cause| StoreError::corrupt("job", "id", cause))?;
    Ok(JobId(uuid))
}

/// Reads a row of `due_job_row`.
pub(crate) fn due_job_from(row: &Row<'_>) -> Answer<DueJob> {
    let active: bool = row.get("active")?;
    Ok(DueJob {
        no: JobNo(row.get("job_no")?),
        tenant: TenantNo(row.get("tenant_no")?),
        next_at: sql_time(row.get("next_at")?).filter(|_| active),
        generation: row.get("generation")?,
        live: row.get("live")?,
        head: head_from(row)?,
        history: history_from(row)?,
        since: Timestamp::from_micros(row.get("since")?),
        fired: count(row, "fired")?,
        definition: row.get("definition")?,
    })
}

/// Reads a row that has the columns `started_attempt_columns` or comes from `queued_attempts`.
pub(crate) fn attempt_from(row: &Row<'_>) -> Answer<Attempt> {
    let key = key_from(row)?;
    let status = AttemptStatus::from_code(row.get("status")?)
        .ok_or_else(|| StoreError::corrupt(key, "status", "unknown"))?;
    let started_at = sql_time(row.get("started_at")?);
    // An attempt that was withdrawn before it started has a number that only retention uses.
    let may_be_withdrawn = matches!(status, AttemptStatus::Cancelled | AttemptStatus::Superseded);
    let is_numbered = !may_be_withdrawn || started_at.is_some();
    let number: Option<i64> = row.get("number")?;
    let node: Option<i32> = row.get("node_no")?;
    let node_name: Option<String> = row.get("node_name")?;
    Ok(Attempt {
        key,
        job: job_id(row.get("id")?)?,
        status,
        fence: Fence(row.get("fence")?),
        crashes: row.get("crashes")?,
        node: node.map(|node| (NodeNo(node), node_name.unwrap_or_default())),
        number: number.filter(|_| is_numbered).map(i64::unsigned_abs),
        started_at,
        finished_at: sql_time(row.get("finished_at")?),
        results: Results {
            error: row.get("error")?,
            output: row.get("output")?,
            items_crawled: row.get("items_crawled")?,
            items_indexed: row.get("items_indexed")?,
            cpu_time: span(row.get("cpu_us")?),
            memory_peak_kb: row.get("memory_kb")?,
        },
        skipped: skipped_from(row, key)?,
        progress: None,
        log: None,
    })
}

fn skipped_from(row: &Row<'_>, key: AttemptKey) -> Answer<Option<SkippedTimes>> {
    let reason: Option<i16> = row.get("skip_reason")?;
    let (Some(reason), Some(to)) = (reason, sql_time(row.get("skipped_to")?)) else {
        return Ok(None);
    };
    let count = count(row, "skipped_count")?;
    let reason = skip_reason_from_code(reason)
        .ok_or_else(|| StoreError::corrupt(key, "skip_reason", "unknown"))?;
    Ok(Some(SkippedTimes { from: key.scheduled_at, to, count, reason }))
}

pub(crate) fn priority_from(row: &Row<'_>) -> Answer<Option<Priority>> {
    let stored: Option<u8> = row.get("priority")?;
    let priority = stored.map(Priority::try_from).transpose();
    Ok(priority.map_err(|fault| StoreError::corrupt("attempt", "priority", fault))?)
}

/// A new row of the queue.
pub(crate) struct ReadyRow<'a> {
    pub(crate) key: AttemptKey,
    pub(crate) tenant: TenantNo,
    pub(crate) entry: &'a QueueEntry,
    pub(crate) fence: Fence,
    pub(crate) crashes: u16,
    pub(crate) prev: Option<RunLink>,
}

impl ReadyRow<'_> {
    pub(crate) fn insert(&self, connection: &Connection) -> Answer<()> {
        let Self { key, tenant, entry, fence, crashes, prev } = self;
        let forbidden = name_list(&entry.forbidden_nodes)?;
        let limit_key = entry.limit.map(|limit| limit.digest);
        let limit_max = entry.limit.map(|limit| limit.most);
        let row: Params<'_> = &[
            &entry.pool, &entry.lane, &entry.priority, &entry.should_start_by, &entry.since, key,
            tenant, fence, crashes, prev, &limit_key, &entry.open_from, &entry.open_until,
            &forbidden, &entry.is_own_priority, &entry.rise, &limit_max,
        ];
        connection.run(sql!("fire_ready"), row)
    }
}
