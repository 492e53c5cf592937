//! Converts rows to the types of the store interface and back.

use evenkeel_core::advance::SkippedTimes;
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{
    About, AttemptKey, History, JobId, JobNo, NodeNo, Sequence, Span, TenantNo, Timestamp,
};
use evenkeel_store::{
    Attempt, DueJob, Job, JobState, LAST_ERROR_MAX, Page, Results, RunLink, StoreError,
    attempt_key_from_columns, from_code, outcome_from_code, skip_reason_from_code, sql_time,
};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Answer;

pub(crate) fn micros(moment: Option<Timestamp>) -> Option<i64> {
    moment.map(Timestamp::as_micros)
}

pub(crate) fn link_columns(link: Option<RunLink>) -> (Option<i64>, Option<u32>) {
    (link.map(|link| link.scheduled_at.as_micros()), link.map(|link| link.sequence.bits()))
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

/// Returns the columns of a key, in the order of the SQL fragment `attempt_key`.
pub(crate) fn key_params(key: AttemptKey) -> (i64, i64, u32, u16) {
    (key.scheduled_at.as_micros(), key.job_no.0, key.sequence.bits(), key.attempt.0)
}

pub(crate) fn key_from(row: &Row<'_>) -> Answer<AttemptKey> {
    Ok(attempt_key_from_columns(
        row.get("scheduled_at")?,
        row.get("job_no")?,
        row.get("sequence")?,
        row.get("attempt")?,
    )?)
}

pub(crate) fn collect<T>(
    mut rows: Rows<'_>,
    mut read: impl FnMut(&Row<'_>) -> Answer<T>,
) -> Answer<Vec<T>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Makes a list page of the items that a statement read with `limit + 1`. The extra item only shows
/// that there is a next page.
pub(crate) fn page_of<T, C>(
    mut items: Vec<T>,
    limit: u32,
    total: i64,
    cursor: impl Fn(&T) -> C,
) -> Page<T, C> {
    let has_more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = items.last().filter(|_| has_more).map(cursor);
    Page { items, total: total.unsigned_abs(), total_is_estimate: false, next }
}

pub(crate) fn count(connection: &Connection, sql: &str, tenant: TenantNo) -> Answer<i64> {
    Ok(connection.prepare_cached(sql)?.query_row([tenant.0], |row| row.get(0))?)
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Refused(Box::new(cause)))
}

fn read_json<T: for<'de> serde::Deserialize<'de>>(
    text: &str,
    job: JobId,
    column: &'static str,
) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|cause| StoreError::corrupt(format_args!("job {job}"), column, cause))
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
            ..read_json(
                row.get_ref("about")?.as_str().map_err(rusqlite::Error::from)?,
                id,
                "about",
            )?
        },
        definition: read_json(
            row.get_ref("definition")?.as_str().map_err(rusqlite::Error::from)?,
            id,
            "definition",
        )?,
        state,
        generation: row.get("generation")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        updated_at,
        next_at: sql_time(row.get("next_at")?),
        last_fired_at: sql_time(row.get("last_fired_at")?),
        live,
        waiting: row.get("waiting")?,
        executions: row.get::<_, i64>("executions")?.unsigned_abs(),
        last_outcome: last_status.and_then(outcome_from_code),
        history: history_from(row)?,
        since: Timestamp::from_micros(row.get("since")?),
        fired: row.get::<_, i64>("fired")?.unsigned_abs(),
        running_since: running.map(|(_, since)| since),
        running: running.map(|(key, _)| key),
        retry_count: retry_count(connection, no, row, running.map(|(key, _)| key))?,
        stopped_at: match state {
            JobState::Active => None,
            JobState::Paused => sql_time(row.get("stopped_at")?),
            // A cancelled or deleted job does not change any more.
            JobState::Cancelled | JobState::Deleted => Some(updated_at),
        },
        succeeded_runs: row.get::<_, i64>("succeeded_runs")?.unsigned_abs(),
        failed_runs: row.get::<_, i64>("failed_runs")?.unsigned_abs(),
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
        let mut statement = connection.prepare_cached(sql!("get_jobs_newest_waiting"))?;
        let mut rows = statement.query([job.0])?;
        newest = newest.max(rows.next()?.map(key_from).transpose()?);
    }
    Ok(newest.map_or(0, |key| key.attempt.0))
}

fn last_error(connection: &Connection, job: JobNo, row: &Row<'_>) -> Answer<Option<String>> {
    let outcome = row.get::<_, Option<i16>>("last_status")?.and_then(outcome_from_code);
    let failed_at: Option<i64> = row.get("failed_at")?;
    let Some(failed_at) = failed_at.filter(|_| outcome.is_some_and(Outcome::is_failure)) else {
        return Ok(None);
    };
    let found: Option<Option<String>> = connection
        .prepare_cached(sql!("get_jobs_last_error"))?
        .query_row(params![failed_at, job.0, LAST_ERROR_MAX as i64], |row| row.get(0))
        .optional()?;
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
        let (at, sequence) = (run.scheduled_at.as_micros(), run.sequence.bits());
        let mut rows = statement.query(params![at, job.0, sequence])?;
        let Some(newest) = rows.next()? else { break };
        let status: i16 = newest.get("status")?;
        if status == AttemptStatus::Running.code() {
            let attempt = newest.get("attempt")?;
            let key = attempt_key_from_columns(at, job.0, sequence.cast_signed(), attempt)?;
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
    let average: Option<i64> = row.get("average_us")?;
    Ok(History {
        last_start_at: sql_time(row.get("last_start_at")?),
        last_end_at: sql_time(row.get("last_end_at")?),
        last_good_start_at: sql_time(row.get("last_good_start_at")?),
        last_good_end_at: sql_time(row.get("last_good_end_at")?),
        consecutive_failures: row.get("failures")?,
        average_good_duration: average.map(|micros| Span::from_micros(micros.unsigned_abs())),
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
    let mut statement = connection.prepare_cached(sql!("find_job_head"))?;
    let found = statement.query_row([job.0], |row| {
        Ok(JobHead {
            next_at: sql_time(row.get("next_at")?),
            live: row.get("live")?,
            head: head_from(row)?,
        })
    });
    Ok(found.optional()?)
}

pub(crate) fn find_job_no(
    connection: &Connection,
    tenant: TenantNo,
    job: JobId,
) -> Answer<Option<JobNo>> {
    let mut statement = connection.prepare_cached(sql!("find_job_no"))?;
    let found =
        statement.query_row(params![tenant.0, job.0.as_bytes().as_slice()], |row| row.get(0));
    Ok(found.optional()?.map(JobNo))
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
        fired: row.get::<_, i64>("fired")?.unsigned_abs(),
        definition: row.get("definition")?,
    })
}

/// Reads a row that has the columns `started_attempt_columns` or comes from `queued_attempts`.
pub(crate) fn attempt_from(row: &Row<'_>) -> Answer<Attempt> {
    let key = key_from(row)?;
    let what = || key.to_string();
    let status: i16 = row.get("status")?;
    let status = AttemptStatus::from_code(status)
        .ok_or_else(|| StoreError::corrupt(what(), "status", "unknown"))?;
    let started_at = sql_time(row.get("started_at")?);
    // An attempt that was withdrawn before it started has a number that only retention uses.
    let may_be_withdrawn = matches!(status, AttemptStatus::Cancelled | AttemptStatus::Superseded);
    let is_numbered = !may_be_withdrawn || started_at.is_some();
    let number: Option<i64> = row.get("number")?;
    let node: Option<i32> = row.get("node_no")?;
    let node_name: Option<String> = row.get("node_name")?;
    let cpu_us: Option<i64> = row.get("cpu_us")?;
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
            cpu_time: cpu_us.map(|micros| Span::from_micros(micros.unsigned_abs())),
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
    let count: i64 = row.get("skipped_count")?;
    let reason = skip_reason_from_code(reason)
        .ok_or_else(|| StoreError::corrupt(key, "skip_reason", "unknown"))?;
    Ok(Some(SkippedTimes { from: key.scheduled_at, to, count: count.unsigned_abs(), reason }))
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
    pub(crate) entry: &'a evenkeel_store::QueueEntry,
    pub(crate) fence: u32,
    pub(crate) crashes: u16,
    pub(crate) prev: Option<RunLink>,
}

impl ReadyRow<'_> {
    pub(crate) fn insert(&self, connection: &Connection) -> Answer<()> {
        let (scheduled_at, job_no, sequence, attempt) = key_params(self.key);
        let (prev_at, prev_sequence) = link_columns(self.prev);
        let forbidden = name_list(&self.entry.forbidden_nodes)?;
        connection.prepare_cached(sql!("fire_ready"))?.execute(params![
            self.entry.pool,
            self.entry.lane as u8,
            self.entry.priority.get(),
            self.entry.should_start_by.as_micros(),
            self.entry.since.as_micros(),
            scheduled_at,
            job_no,
            sequence,
            attempt,
            self.tenant.0,
            self.fence,
            self.crashes,
            prev_at,
            prev_sequence,
            self.entry.limit.as_ref().map(|limit| limit.digest.as_bytes()),
            micros(self.entry.open_from),
            micros(self.entry.open_until),
            forbidden,
            self.entry.is_own_priority,
            self.entry.rise.0,
            self.entry.limit.map(|limit| limit.most),
        ])?;
        Ok(())
    }
}
