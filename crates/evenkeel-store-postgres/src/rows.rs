//! Converts between types and columns.

use std::fmt::Display;

use evenkeel_core::lease::Fence;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, History, JobNo, Sequence, Shard, Slot, Span, TenantNo, Timestamp};
use evenkeel_store::{
    Cause, DueJob, Page, PageRequest, QueueEntry, RunLink, Start, StoreError,
    attempt_key_from_columns, sql_time,
};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::FromSql;

use crate::error::Tried;

/// A column, addressed by its name or, on the hot path, by its position.
pub(crate) trait Column: RowIndex + Display {}

impl<T: RowIndex + Display> Column for T {}

/// Reading fails only if the statement does not return the type that its reader expects.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: impl Column) -> Tried<T> {
    row.try_get(column).map_err(|error| StoreError::Refused(error.into()).into())
}

/// Reads an array, which is empty if the column is `NULL`.
pub(crate) fn array<'r, T: FromSql<'r>>(row: &'r Row, column: impl Column) -> Tried<Vec<T>> {
    Ok(get::<Option<Vec<T>>>(row, column)?.unwrap_or_default())
}

pub(crate) fn micros(moment: Option<Timestamp>) -> Option<i64> {
    moment.map(Timestamp::as_micros)
}

pub(crate) fn time(row: &Row, column: impl Column) -> Tried<Timestamp> {
    get(row, column).map(Timestamp::from_micros)
}

pub(crate) fn maybe_time(row: &Row, column: impl Column) -> Tried<Option<Timestamp>> {
    get(row, column).map(sql_time)
}

pub(crate) fn slot(moment: Option<Timestamp>) -> Option<i32> {
    moment.map(|moment| Slot::of(moment).0)
}

pub(crate) fn sequence(sequence: Sequence) -> i32 {
    // 20 bits.
    sequence.bits().cast_signed()
}

pub(crate) fn attempt(key: AttemptKey) -> i16 {
    // At most 1023.
    key.attempt.0.cast_signed()
}

pub(crate) fn fence(fence: Fence) -> i32 {
    fence.0.cast_signed()
}

/// Replaces NUL, the only character that PostgreSQL cannot store.
pub(crate) fn text(text: &Option<String>) -> Option<String> {
    text.as_ref().map(|text| text.replace('\0', "\u{fffd}"))
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Refused(error.into()))
}

/// Returns job numbers in lock order, each number once.
pub(crate) fn job_numbers(jobs: &[JobNo]) -> Vec<i64> {
    let mut numbers: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(crate) fn shards(shards: &[Shard]) -> Vec<i16> {
    shards.iter().map(|shard| i16::from(shard.0)).collect()
}

pub(crate) fn count(row: &Row, column: impl Column) -> Tried<u64> {
    Ok(get::<i64>(row, column)?.max(0).cast_unsigned())
}

/// Reads a number that counts from 1, and returns the position in an array that it stands for.
pub(crate) fn position(row: &Row, column: impl Column) -> Tried<usize> {
    Ok(usize::try_from(get::<i64>(row, column)? - 1).unwrap_or(usize::MAX))
}

/// Reads the key of an attempt from the columns `scheduled_at`, `job_no`, `sequence` and `attempt`.
pub(crate) fn key(row: &Row) -> Tried<AttemptKey> {
    let (scheduled_at, job_no) = (get(row, "scheduled_at")?, get(row, "job_no")?);
    Ok(attempt_key_from_columns(scheduled_at, job_no, get(row, "sequence")?, get(row, "attempt")?)?)
}

/// Reads the key of an attempt from four columns by position, which is faster than by name.
pub(crate) fn key_at(row: &Row, first: usize) -> Tried<AttemptKey> {
    let (scheduled_at, job_no) = (get(row, first)?, get(row, first + 1)?);
    Ok(attempt_key_from_columns(scheduled_at, job_no, get(row, first + 2)?, get(row, first + 3)?)?)
}

/// Returns the columns `scheduled_at`, `job_no`, `sequence` and `attempt` of an attempt.
pub(crate) fn key_columns(key: AttemptKey) -> (i64, i64, i32, i16) {
    (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
}

/// Returns one value of each item, as the array that a statement gets for a column.
pub(crate) fn column<I: IntoIterator, T>(items: I, value: impl FnMut(I::Item) -> T) -> Vec<T> {
    items.into_iter().map(value).collect()
}

/// Returns the limit for a statement that reads a page of a list. One extra row shows whether there
/// is another page.
pub(crate) fn page_limit<C>(request: &PageRequest<C>) -> i64 {
    i64::from(request.limit) + 1
}

/// Reads a page of a list from the rows of a statement with [`page_limit`]. The list has `total`
/// items, of which at most `counted_max` were counted exactly.
pub(crate) fn page_of<T, C>(
    request: &PageRequest<C>,
    rows: &[Row],
    read: impl Fn(&Row) -> Tried<T>,
    cursor: impl Fn(&T) -> C,
    (total, counted_max): (u64, u64),
) -> Tried<Page<T, C>> {
    let limit = request.limit as usize;
    let items = rows.iter().take(limit).map(read).collect::<Tried<Vec<T>>>()?;
    let next = items.last().filter(|_| rows.len() > limit).map(cursor);
    Ok(Page { items, total: total.min(counted_max), total_is_estimate: total > counted_max, next })
}

#[derive(Debug, Default)]
pub(crate) struct KeyColumns {
    pub(crate) job_no: Vec<i64>,
    pub(crate) scheduled_at: Vec<i64>,
    pub(crate) sequence: Vec<i32>,
    pub(crate) attempt: Vec<i16>,
}

impl KeyColumns {
    pub(crate) fn push(&mut self, key: AttemptKey) {
        self.job_no.push(key.job_no.0);
        self.scheduled_at.push(key.scheduled_at.as_micros());
        self.sequence.push(sequence(key.sequence));
        self.attempt.push(attempt(key));
    }
}

impl FromIterator<AttemptKey> for KeyColumns {
    fn from_iter<I: IntoIterator<Item = AttemptKey>>(keys: I) -> Self {
        let mut columns = Self::default();
        keys.into_iter().for_each(|key| columns.push(key));
        columns
    }
}

/// Queue entries as arrays. A `NULL` pool stands for an attempt that is not queued.
#[derive(Debug, Default)]
pub(crate) struct QueueColumns {
    pub(crate) pool: Vec<Option<String>>,
    pub(crate) lane: Vec<Option<i16>>,
    pub(crate) priority: Vec<Option<i16>>,
    pub(crate) own_priority: Vec<bool>,
    pub(crate) since: Vec<Option<i64>>,
    pub(crate) rise: Vec<Option<i64>>,
    pub(crate) should_start_by: Vec<Option<i64>>,
    pub(crate) limit_key: Vec<Option<Vec<u8>>>,
    pub(crate) limit_max: Vec<Option<i32>>,
    pub(crate) open_from: Vec<Option<i64>>,
    pub(crate) open_until: Vec<Option<i64>>,
    pub(crate) forbidden_nodes: Vec<Option<String>>,
}

impl QueueColumns {
    pub(crate) fn push(&mut self, entry: Option<&QueueEntry>) {
        self.pool.push(entry.map(|entry| entry.pool.clone()));
        self.lane.push(entry.map(|entry| entry.lane as i16));
        self.priority.push(entry.map(|entry| i16::from(entry.priority.get())));
        self.own_priority.push(entry.is_some_and(|entry| entry.is_own_priority));
        self.since.push(entry.map(|entry| entry.since.as_micros()));
        self.rise.push(entry.map(|entry| entry.rise.0));
        self.should_start_by.push(entry.map(|entry| entry.should_start_by.as_micros()));
        let limit = entry.and_then(|entry| entry.limit);
        self.limit_key.push(limit.map(|limit| limit.digest.as_bytes().to_vec()));
        self.limit_max.push(limit.map(|limit| limit.most.cast_signed()));
        self.open_from.push(micros(entry.and_then(|entry| entry.open_from)));
        self.open_until.push(micros(entry.and_then(|entry| entry.open_until)));
        self.forbidden_nodes.push(entry.and_then(|entry| name_list(&entry.forbidden_nodes)));
    }
}

pub(crate) fn priority(given: Option<Priority>) -> Option<i16> {
    given.map(|priority| i16::from(priority.get()))
}

pub(crate) fn maybe_priority(row: &Row, column: impl Column) -> Tried<Option<Priority>> {
    let stored: Option<i16> = get(row, column)?;
    let read = |number: i16| {
        let number = u8::try_from(number).map_err(|_| "not a priority".to_owned())?;
        Priority::try_from(number).map_err(|fault| fault.to_string())
    };
    let corrupt = |fault| StoreError::corrupt("attempt", "priority", fault).into();
    stored.map(read).transpose().map_err(corrupt)
}

/// Returns node names as a JSON list. Names that PostgreSQL cannot store are left out, because no
/// node can have them.
pub(crate) fn name_list(names: &[String]) -> Option<String> {
    let possible: Vec<&String> = names.iter().filter(|name| !name.contains('\0')).collect();
    (!possible.is_empty()).then(|| serde_json::json!(possible).to_string())
}

pub(crate) fn entry_of(start: &Start) -> Option<&QueueEntry> {
    match start {
        Start::Claimed => None,
        Start::Queued(entry) => Some(entry),
    }
}

/// Reads the columns of the SQL fragment `due_job_columns`.
pub(crate) fn due_job(row: &Row) -> Tried<DueJob> {
    let no = JobNo(get(row, "job_no")?);
    let head_at = maybe_time(row, "head_at")?;
    let head_sequence: Option<i32> = get(row, "head_sequence")?;
    Ok(DueJob {
        no,
        tenant: TenantNo(get(row, "tenant_no")?),
        next_at: maybe_time(row, "next_at")?,
        generation: get(row, "generation")?,
        live: get::<i32>(row, "live")?.max(0).cast_unsigned(),
        head: head_at.zip(head_sequence).map(|(at, bits)| link(no, at, bits)).transpose()?,
        history: history(row)?,
        since: time(row, "since")?,
        fired: count(row, "fired")?,
        definition: get(row, "definition")?,
    })
}

pub(crate) fn history(row: &Row) -> Tried<History> {
    Ok(History {
        last_start_at: maybe_time(row, "last_start_at")?,
        last_end_at: maybe_time(row, "last_end_at")?,
        last_good_start_at: maybe_time(row, "last_good_start_at")?,
        last_good_end_at: maybe_time(row, "last_good_end_at")?,
        consecutive_failures: get::<i32>(row, "failures")?.max(0).cast_unsigned(),
        average_good_duration: get::<Option<i64>>(row, "average_us")?.map(span),
        duration_variance: get(row, "variance")?,
    })
}

pub(crate) fn span(micros: i64) -> Span {
    Span::from_micros(micros.max(0).cast_unsigned())
}

/// Returns a span in microseconds, limited to the highest value of an int8.
pub(crate) fn span_micros(span: Span) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn link(no: JobNo, scheduled_at: Timestamp, bits: i32) -> Result<RunLink, StoreError> {
    let sequence = u32::try_from(bits).ok().and_then(Sequence::from_bits).ok_or_else(|| {
        StoreError::corrupt(format!("job {no}"), "head_sequence", Cause::from("more than 20 bits"))
    })?;
    Ok(RunLink { scheduled_at, sequence })
}
