//! Stores the results of finished attempts one by one, updates the history of their jobs, and adds
//! a retry or ends the run.

use evenkeel_core::{AttemptKey, AttemptNo, History, JobNo, NodeNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, Hook, Then, sql_time,
};
use rusqlite::{CachedStatement, Connection, Row};

use super::cancel::is_asked_to_end;
use crate::balance::Counts;
use crate::connection::{Params, RunPrepared, RunSql, weight};
use crate::error::Answer;
use crate::jobs::register::mark_changed;
use crate::rows::span;
use crate::schedules::fire::by_job;
use crate::{conditions, dead_letters, notes};

/// The most frequent statements of this module, prepared once per batch.
struct Statements<'c> {
    plain_attempt: CachedStatement<'c>,
    plain_job: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
    history: CachedStatement<'c>,
    job: CachedStatement<'c>,
}

impl Statements<'_> {
    /// Stores the result of an attempt. Returns false if the node no longer runs the attempt under
    /// this fence.
    fn end_attempt(&mut self, node: NodeNo, finish: &Finish) -> Answer<bool> {
        let Finish { key, fence, outcome, finished_at, results, .. } = finish;
        if finish.is_plain() {
            let ended = self.plain_attempt.change(&[key, &node, fence, outcome, finished_at])?;
            return Ok(ended == 1);
        }
        let ended = self.attempt.change(&[
            key, &node, fence, outcome, finished_at, &results.error, &results.output,
            &results.items_crawled, &results.items_indexed, &results.cpu_time,
            &results.memory_peak_kb,
        ])?;
        Ok(ended == 1)
    }

    /// Updates the history of a job after a plain result. Returns false if nothing was changed,
    /// because the job has a condition or no longer exists.
    fn update_job_plainly(&mut self, finish: &Finish, alpha: f64) -> Answer<bool> {
        let Finish { key, outcome, started_at, finished_at, .. } = finish;
        let took = finished_at.since(*started_at);
        let updated = self.plain_job.change(&[
            &key.job_no, &key.scheduled_at, outcome, started_at, finished_at, &took, &alpha,
        ])?;
        Ok(updated == 1)
    }

    fn update_job(&mut self, finish: &Finish, over: bool, after: &History) -> Answer<()> {
        let Finish { key, outcome, .. } = finish;
        let succeeded_at = outcome.is_success().then_some(key.scheduled_at);
        let failed_at = outcome.is_failure().then_some(key.scheduled_at);
        self.job.run(&[
            &key.job_no, &over, outcome, &after.last_start_at, &after.last_end_at,
            &after.last_good_start_at, &after.last_good_end_at, &after.consecutive_failures,
            &after.average_good_duration, &after.duration_variance, &succeeded_at, &failed_at,
        ])
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
        plain_attempt: connection.prepare_cached(sql!("finish_plain_attempt"))?,
        plain_job: connection.prepare_cached(sql!("finish_plain_job"))?,
        attempt: connection.prepare_cached(sql!("finish_attempt"))?,
        history: connection.prepare_cached(sql!("finish_history"))?,
        job: connection.prepare_cached(sql!("finish_job"))?,
    };
    let mut counts = Counts::default();
    for index in by_job(batch, |finish| finish.key.job_no) {
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
    if finish.is_plain() && statements.update_job_plainly(finish, alpha)? {
        return Ok(FinishResult::Done);
    }
    if finish.attachments != Attachments::default() {
        notes::finish_attachments(connection, finish)?;
    }
    let over = is_run_over(connection, node, finish)?;
    let before = statements.history.maybe_row(&[&job], Before::from_row)?;
    // The row of a job is deleted after its runs, so a missing row means that there is no history
    // to update.
    let Some(before) = before else { return Ok(FinishResult::Done) };
    let after = before.history.after(finish.outcome, finish.started_at, finish.finished_at, alpha);
    statements.update_job(finish, over, &after)?;
    if finish.hook != Hook::None && is_asked_to_end(connection, node, finish.key)?.is_none() {
        dead_letters::apply_hook(connection, finish)?;
    }
    correct_skips(connection, finish)?;
    // An attempt that started under an older schedule neither changes the next run time nor stops
    // the job.
    if let Then::EndRun { stop_job, next_at } = finish.then
        && (stop_job || next_at.is_some())
        && before.placed_at.is_none_or(|placed_at| placed_at <= finish.started_at)
    {
        let stops = stop_job && is_asked_to_end(connection, node, finish.key)?.is_none();
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
        connection.run(sql!("finish_stop_job"), &[&job])?;
    } else if let Some(next_at) = next_at {
        let slot = Slot::of(next_at);
        if connection.change(sql!("finish_follow"), &[&job, &next_at, &slot])? == 1 {
            mark_changed(connection, job)?;
        }
    }
    Ok(())
}

/// Corrects the recorded reason of scheduled runs that were skipped while the result of this
/// attempt could not be stored.
fn correct_skips(connection: &Connection, finish: &Finish) -> Answer<()> {
    let Some(since) = finish.unstored_since else { return Ok(()) };
    connection.run(sql!("finish_correct_skips"), &[&finish.key.job_no, &since])
}

/// Adds a retry if one is allowed. Returns true if the run is over.
fn is_run_over(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<bool> {
    let Then::Retry { due } = finish.then else { return Ok(true) };
    let key = finish.key;
    // A stopped or cancelled run is not retried, nor is a run that has used its last attempt
    // number.
    if key.attempt >= AttemptNo::MAX
        || is_stopped(connection, key)?
        || is_asked_to_end(connection, node, key)?.is_some()
    {
        return Ok(true);
    }
    let (shard, retry) = (Shard::of(key.job_no), key.with_attempt(AttemptNo(key.attempt.0 + 1)));
    let retry: Params<'_> = &[&shard, &due, &retry, &finish.tenant, &finish.priority];
    connection.run(sql!("trigger_delayed"), retry)?;
    Ok(false)
}

/// Returns true if the job is cancelled or deleted, or was paused after the scheduled time of the
/// run.
pub(super) fn is_stopped(connection: &Connection, key: AttemptKey) -> Answer<bool> {
    connection.has_row(sql!("finish_is_stopped"), &[&key.job_no, &key.scheduled_at])
}

fn classify(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<FinishResult> {
    let done_before =
        connection.has_row(sql!("finish_classify"), &[&finish.key, &node, &finish.fence])?;
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
    fn from_row(row: &Row<'_>) -> Answer<Self> {
        let time = |column| -> Answer<Option<Timestamp>> { Ok(sql_time(row.get(column)?)) };
        let history = History {
            last_start_at: time(0)?,
            last_end_at: time(1)?,
            last_good_start_at: time(2)?,
            last_good_end_at: time(3)?,
            consecutive_failures: row.get(4)?,
            average_good_duration: span(row.get(5)?),
            duration_variance: row.get(6)?,
        };
        let (has_condition, follows_end) = (row.get(7)?, row.get(8)?);
        Ok(Self { history, has_condition, follows_end, placed_at: time(9)? })
    }
}
