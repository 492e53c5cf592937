//! Ends attempts: their results, their job's history, and what follows, row by row.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, AttemptNo, History, JobNo, NodeNo, Shard, Slot, Span, Timestamp};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, FinishResult, Hook, Then, skip_reason_code,
    sql_time,
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

/// The statements of the hot path, looked up once for a whole batch.
struct Statements<'c> {
    run: CachedStatement<'c>,
    history: CachedStatement<'c>,
    job: CachedStatement<'c>,
}

/// About how many rows of other verbs an end costs the writer.
pub(crate) fn rows(finish: &Finish) -> usize {
    let texts = [&finish.results.error, &finish.results.output];
    let said: usize = texts.into_iter().flatten().map(String::len).sum();
    let saved = match &finish.attachments.checkpoint {
        CheckpointDisposition::Save(data) => data.len(),
        CheckpointDisposition::AsIs | CheckpointDisposition::Forget => 0,
    };
    weight(1, said + saved)
}

pub(crate) fn finish(
    connection: &Connection,
    node: NodeNo,
    batch: &[Finish],
    alpha: f64,
) -> Answer<Vec<FinishResult>> {
    let mut results = vec![FinishResult::LeaseLost; batch.len()];
    let mut statements = Statements {
        run: connection.prepare_cached(sql!("finish_attempt"))?,
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
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    let status = AttemptStatus::from(finish.outcome).code();
    let results = &finish.results;
    let ended = statements.run.execute(params![
        scheduled_at,
        job_no,
        sequence,
        attempt,
        node.0,
        finish.fence.0,
        status,
        finish.finished_at.as_micros(),
        results.error,
        results.output,
        results.items_crawled,
        results.items_indexed,
        stored_span(results.cpu_time),
        results.memory_peak_kb,
    ])?;
    if ended == 0 {
        let result = classify(connection, node, finish)?;
        if result == FinishResult::AlreadyDone {
            correct_skips(connection, finish)?;
        }
        return Ok(result);
    }
    if finish.attachments != Attachments::default() {
        notes::settle(connection, finish)?;
    }
    let over = chain_is_over(connection, node, finish)?;
    let before = statements.history.query_row([job_no], Before::from_row).optional()?;
    // A job's row outlives its runs, so it is there; if not, there is no history to keep.
    let Some(before) = before else { return Ok(FinishResult::Done) };
    let after = before.history.after(finish.outcome, finish.started_at, finish.finished_at, alpha);
    let good_at = finish.outcome.is_success().then_some(scheduled_at);
    let failed_at = finish.outcome.is_failure().then_some(scheduled_at);
    statements.job.execute(params![
        job_no,
        over,
        status,
        micros(after.last_start_at),
        micros(after.last_end_at),
        micros(after.last_good_start_at),
        micros(after.last_good_end_at),
        after.consecutive_failures,
        stored_span(after.average_good_duration),
        after.duration_variance,
        good_at,
        failed_at,
    ])?;
    if finish.hook != Hook::None && is_asked_to_end(connection, node.0, finish.key)?.is_none() {
        dead_letters::obey_hook(connection, finish)?;
    }
    correct_skips(connection, finish)?;
    // What was decided under an older schedule neither moves nor stops the job.
    if let Then::EndRun { stop_job, next_at } = finish.then
        && (stop_job || next_at.is_some())
        && before.placed_at.is_none_or(|placed_at| placed_at <= finish.started_at)
    {
        let stops = stop_job && is_asked_to_end(connection, node.0, finish.key)?.is_none();
        go_on(connection, finish.key.job_no, stops, next_at.filter(|_| before.by_end))?;
        if stops {
            counts.recount(connection, finish.key.job_no, None)?;
        }
    }
    let good = finish.outcome.is_success();
    if over && !good {
        conditions::tell_of_end(connection, finish.key.job_no)?;
    } else if !good || finish.judge {
        conditions::put(connection, finish.key.job_no)?;
    } else if before.watched {
        conditions::touch(connection, finish.key.job_no)?;
    }
    Ok(FinishResult::Done)
}

/// The next regular time of a job, one of whose chains is over. The end of a run that somebody
/// wanted stops no job.
fn go_on(
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

/// Says of times that were skipped while an end could not be stored why they were.
fn correct_skips(connection: &Connection, finish: &Finish) -> Answer<()> {
    let Some(since) = finish.unstored_since else { return Ok(()) };
    let (from, to) = (SkipReason::Overlap, SkipReason::EndNotStored);
    connection.prepare_cached(sql!("finish_correct_skips"))?.execute(params![
        finish.key.job_no.0,
        since.as_micros(),
        skip_reason_code(from),
        skip_reason_code(to)
    ])?;
    Ok(())
}

/// Queues the retry if there is one, and says whether the chain ends here instead.
fn chain_is_over(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<bool> {
    let Then::Retry { due } = finish.then else { return Ok(true) };
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    // What is stopped goes no further, nor does a run that is to end, and an attempt beyond the last
    // has no key.
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

/// Is its job over, or paused since after the time it is for?
pub(super) fn is_stopped(connection: &Connection, key: AttemptKey) -> Answer<bool> {
    Ok(connection
        .prepare_cached(sql!("finish_is_stopped"))?
        .exists(params![key.job_no.0, key.scheduled_at.as_micros()])?)
}

fn classify(connection: &Connection, node: NodeNo, finish: &Finish) -> Answer<FinishResult> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(finish.key);
    let done_before = connection.prepare_cached(sql!("finish_classify"))?.exists(params![
        scheduled_at,
        job_no,
        sequence,
        attempt,
        node.0,
        finish.fence.0
    ])?;
    Ok(if done_before { FinishResult::AlreadyDone } else { FinishResult::LeaseLost })
}

/// What the end depends on.
struct Before {
    history: History,
    watched: bool,
    by_end: bool,
    placed_at: Option<Timestamp>,
}

impl Before {
    /// By position, not by name: this is read once for every attempt that ends.
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
        Ok(Self { history, watched: row.get(7)?, by_end: row.get(8)?, placed_at: time(9)? })
    }
}

fn stored_span(span: Option<Span>) -> Option<i64> {
    span.map(|span| i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
}
