//! Stores the results of finished attempts one by one, updates the history of their jobs, and adds
//! a retry or ends the run.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, AttemptNo, History, JobNo, NodeNo, Shard, Slot, Span, Timestamp};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, Hook, Then, sql_time,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::cancel::is_asked_to_end;
use crate::balance::Counts;
use crate::connection::urgency::weight;
use crate::error::Answer;
use crate::jobs::register::mark_changed;
use crate::rows::{key_params, micros};
use crate::schedules::fire::by_job;
use crate::{conditions, dead_letters, notes};

/// The most frequent statements of this module, prepared once per batch.
struct Statements<'c> {
    attempt: CachedStatement<'c>,
    history: CachedStatement<'c>,
    job: CachedStatement<'c>,
}

impl Statements<'_> {
    /// Stores the result of an attempt. Returns false if the node no longer runs the attempt under
    /// this fence.
    fn end_attempt(&mut self, node: NodeNo, finish: &Finish) -> Answer<bool> {
        let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
        let results = &finish.results;
        let ended = self.attempt.execute(params![
            scheduled_at,
            job_no,
            sequence,
            attempt,
            node.0,
            finish.fence.0,
            AttemptStatus::from(finish.outcome).code(),
            finish.finished_at.as_micros(),
            results.error,
            results.output,
            results.items_crawled,
            results.items_indexed,
            stored_span(results.cpu_time),
            results.memory_peak_kb,
        ])?;
        Ok(ended == 1)
    }

    fn update_job(&mut self, finish: &Finish, over: bool, after: &History) -> Answer<()> {
        let scheduled_at = finish.key.scheduled_at.as_micros();
        self.job.execute(params![
            finish.key.job_no.0,
            over,
            AttemptStatus::from(finish.outcome).code(),
            micros(after.last_start_at),
            micros(after.last_end_at),
            micros(after.last_good_start_at),
            micros(after.last_good_end_at),
            after.consecutive_failures,
            stored_span(after.average_good_duration),
            after.duration_variance,
            finish.outcome.is_success().then_some(scheduled_at),
            finish.outcome.is_failure().then_some(scheduled_at),
        ])?;
        Ok(())
    }
}

/// Estimates the work of storing the result of this attempt, as a number of rows.
pub(crate) fn rows(finish: &Finish) -> usize {
    let texts = [&finish.results.error, &finish.results.output];
    let text_bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    let checkpoint_bytes = match &finish.attachments.checkpoint {
        CheckpointDisposition::Replace(data) => data.len(),
        CheckpointDisposition::Keep | CheckpointDisposition::Delete => 0,
    };
    weight(1, text_bytes + checkpoint_bytes)
}

pub(crate) fn finish(
    connection: &Connection,
    node: NodeNo,
    batch: &[Finish],
    alpha: f64,
) -> Answer<Vec<FinishResult>> {
    let mut results = vec![FinishResult::LeaseLost; batch.len()];
    let mut statements = Statements {
        attempt: connection.prepare_cached(sql!("finish_attempt"))?,
        history: connection.prepare_cached(sql!("finish_history"))?,
        job: connection.prepare_cached(sql!("finish_job"))?,
    };
    let mut counts = Counts::default();
    for index in by_job(batch, |finish| finish.key.job_no.0) {
        let finish = &batch[index];
        results[index] = finish_one(connection, &mut statements, &mut counts, node, finish, alpha)?;
    }
    counts.write(connection)?;
    Ok(results)
}

fn finish_one(
    connection: &Connection,
    statements: &mut Statements<'_>,
    counts: &mut Counts,
    node: NodeNo,
    finish: &Finish,
    alpha: f64,
) -> Answer<FinishResult> {
    let job = finish.key.job_no;
    if !statements.end_attempt(node, finish)? {
        let result = classify(connection, node, finish)?;
        if result == FinishResult::AlreadyDone {
            correct_skips(connection, finish)?;
        }
        return Ok(result);
    }
    if finish.attachments != Attachments::default() {
        notes::finish_attachments(connection, finish)?;
    }
    let over = is_run_over(connection, node, finish)?;
    let before = statements.history.query_row([job.0], Before::from_row).optional()?;
    // The row of a job is deleted after its runs, so a missing row means that there is no history
    // to update.
    let Some(before) = before else { return Ok(FinishResult::Done) };
    let after = before.history.after(finish.outcome, finish.started_at, finish.finished_at, alpha);
    statements.update_job(finish, over, &after)?;
    if finish.hook != Hook::None && is_asked_to_end(connection, node.0, finish.key)?.is_none() {
        dead_letters::apply_hook(connection, finish)?;
    }
    correct_skips(connection, finish)?;
    // A decision that was made under an older schedule neither changes the next run time nor stops
    // the job.
    if let Then::EndRun { stop_job, next_at } = finish.then
        && (stop_job || next_at.is_some())
        && before.placed_at.is_none_or(|placed_at| placed_at <= finish.started_at)
    {
        let stops = stop_job && is_asked_to_end(connection, node.0, finish.key)?.is_none();
        set_next_time(connection, job, stops, next_at.filter(|_| before.follows_end))?;
        if stops {
            counts.recount(connection, job, None)?;
        }
    }
    let succeeded = finish.outcome.is_success();
    if over && !succeeded {
        conditions::mark_after_failure(connection, job)?;
    } else if !succeeded || finish.judge {
        conditions::mark(connection, job)?;
    } else if before.has_condition {
        conditions::touch(connection, job)?;
    }
    Ok(FinishResult::Done)
}

/// Sets the next run time of a job after a run has finished, or stops the job.
fn set_next_time(
    connection: &Connection,
    job: JobNo,
    stops: bool,
    next_at: Option<Timestamp>,
) -> Answer<()> {
    if stops {
        connection.prepare_cached(sql!("finish_stop_job"))?.execute([job.0])?;
    } else if let Some(next_at) = next_at {
        let moved = connection.prepare_cached(sql!("finish_follow"))?.execute(params![
            job.0,
            next_at.as_micros(),
            Slot::of(next_at).0
        ])?;
        if moved == 1 {
            mark_changed(connection, job)?;
        }
    }
    Ok(())
}

/// Corrects the recorded reason of scheduled runs that were skipped while the result of this
/// attempt could not be stored.
fn correct_skips(connection: &Connection, finish: &Finish) -> Answer<()> {
    let Some(since) = finish.unstored_since else { return Ok(()) };
    connection
        .prepare_cached(sql!("finish_correct_skips"))?
        .execute(params![finish.key.job_no.0, since.as_micros()])?;
    Ok(())
}

/// Adds a retry if one is allowed. Returns true if the run is over.
fn is_run_over(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<bool> {
    let Then::Retry { due } = finish.then else { return Ok(true) };
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    // A stopped or cancelled run is not retried, nor is a run that has used its last attempt
    // number.
    if finish.key.attempt >= AttemptNo::MAX
        || is_stopped(connection, finish.key)?
        || is_asked_to_end(connection, node.0, finish.key)?.is_some()
    {
        return Ok(true);
    }
    connection.prepare_cached(sql!("trigger_delayed"))?.execute(params![
        Shard::of(finish.key.job_no).0,
        due.as_micros(),
        scheduled_at,
        job_no,
        sequence,
        attempt + 1,
        finish.tenant.0,
        finish.priority.map(Priority::get),
    ])?;
    Ok(false)
}

/// Returns true if the job is cancelled or deleted, or was paused after the scheduled time of the
/// run.
pub(super) fn is_stopped(connection: &Connection, key: AttemptKey) -> Answer<bool> {
    Ok(connection
        .prepare_cached(sql!("finish_is_stopped"))?
        .exists(params![key.job_no.0, key.scheduled_at.as_micros()])?)
}

fn classify(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<FinishResult> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    let done_before = connection
        .prepare_cached(sql!("finish_classify"))?
        .exists(params![scheduled_at, job_no, sequence, attempt, node.0, finish.fence.0])?;
    Ok(if done_before { FinishResult::AlreadyDone } else { FinishResult::LeaseLost })
}

/// The columns of the job's row that finishing an attempt reads.
struct Before {
    history: History,
    has_condition: bool,
    follows_end: bool,
    placed_at: Option<Timestamp>,
}

impl Before {
    /// Finishing an attempt always reads the job's row, so columns are read by position, which is
    /// faster than by name. The columns are in the order of the SQL statement `finish_history`.
    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let time =
            |column| -> rusqlite::Result<Option<Timestamp>> { Ok(sql_time(row.get(column)?)) };
        let average: Option<i64> = row.get(5)?;
        let history = History {
            last_start_at: time(0)?,
            last_end_at: time(1)?,
            last_good_start_at: time(2)?,
            last_good_end_at: time(3)?,
            consecutive_failures: row.get(4)?,
            average_good_duration: average.map(|micros| Span::from_micros(micros.unsigned_abs())),
            duration_variance: row.get(6)?,
        };
        Ok(Self {
            history,
            has_condition: row.get(7)?,
            follows_end: row.get(8)?,
            placed_at: time(9)?,
        })
    }
}

fn stored_span(span: Option<Span>) -> Option<i64> {
    span.map(|span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}
