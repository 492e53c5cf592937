//! Finishes attempts. One statement stores the results, the history and the retries; further
//! statements delete progress notes and store dead letters.

use std::collections::HashSet;

use evenkeel_core::NodeNo;
use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_store::{
    Attachments, Finish, FinishResult, Hook, OVERRIDE_ALPHA, StoreError, Then, skip_reason_code,
};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::balance::count_ended;
use crate::connection::{Connection, Params, rounds};
use crate::error::Tried;
use crate::notes::apply_attachments;
use crate::rows::{KeyColumns, fence, get, micros, priority, slot, span_micros, text};

struct Args {
    node: i32,
    alpha: f64,
    batch: Vec<Finish>,
}

pub(super) async fn finish(
    store: &PostgresStore,
    node: NodeNo,
    batch: Vec<Finish>,
    alpha: f64,
) -> Result<Vec<FinishResult>, StoreError> {
    let args = Args { node: node.0, alpha, batch };
    run!(store.hot, args, |connection, args| {
        let rounds = rounds(&args.batch, |finish| finish.key.job_no);
        let leaves_traces = args.batch.iter().any(|end| end.attachments != Attachments::default());
        let does_more =
            |end: &Finish| stops_job(end) || end.hook != Hook::None || end.unstored_since.is_some();
        let is_lone = !leaves_traces && !args.batch.iter().any(does_more);
        match &rounds[..] {
            // A single statement is a transaction, so no explicit transaction is needed.
            [] | [_] if is_lone => run(connection, args, &rounds).await,
            _ => connection.transaction(run(connection, args, &rounds)).await,
        }
    })
}

/// The result of an attempt that lost its worker.
#[derive(Clone)]
pub(super) struct LostEnd {
    pub(super) end: Finish,
    pub(super) crashed: bool,
}

/// Ends attempts that lost their worker, and counts these crashes in the same transaction.
pub(super) async fn fail_lost(
    store: &PostgresStore,
    node: NodeNo,
    lost: Vec<LostEnd>,
) -> Result<Vec<FinishResult>, StoreError> {
    let crashed: Vec<bool> = lost.iter().map(|lost| lost.crashed).collect();
    let batch = lost.into_iter().map(|lost| lost.end).collect();
    let args = Args { node: node.0, alpha: OVERRIDE_ALPHA, batch };
    transaction!(store.hot, (args, crashed), |connection, (args, crashed)| {
        let rounds = rounds(&args.batch, |finish| finish.key.job_no);
        let results = run(connection, args, &rounds).await?;
        let counts = |at: &usize| crashed[*at] && results[*at] == FinishResult::Done;
        let died = (0..results.len()).filter(counts).map(|at| args.batch[at].key);
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = died.collect();
        if !job_no.is_empty() {
            let keys: Params<'_> = &[&job_no, &scheduled_at, &sequence, &attempt];
            connection.rows(sql!("requeue_count_crash"), keys).await?;
        }
        Ok(results)
    })
}

/// Ends one attempt in the caller's transaction, without changing the average run duration of the
/// job.
pub(super) async fn finish_one(
    connection: &Connection,
    node: i32,
    finish: Finish,
) -> Tried<FinishResult> {
    let args = Args { node, alpha: OVERRIDE_ALPHA, batch: vec![finish] };
    let results = run(connection, &args, &[vec![0]]).await?;
    Ok(results.first().copied().unwrap_or(FinishResult::LeaseLost))
}

async fn run(
    connection: &Connection,
    args: &Args,
    rounds: &[Vec<usize>],
) -> Tried<Vec<FinishResult>> {
    let mut results = vec![FinishResult::Done; args.batch.len()];
    for round in rounds {
        let finishes: Vec<&Finish> = round.iter().map(|at| &args.batch[*at]).collect();
        let columns = FinishColumns::new(&finishes);
        let row = if finishes.iter().all(|finish| finish.is_plain()) {
            columns.finish_plain(connection, args).await?
        } else {
            columns.finish(connection, args, &finishes).await?
        };
        let ended: Vec<i64> = get::<Option<Vec<i64>>>(&row, 0)?.unwrap_or_default();
        if ended.len() == round.len() {
            apply_hooks(connection, &finishes).await?;
            continue;
        }
        let ended: HashSet<i64> = ended.into_iter().collect();
        let done: Vec<&Finish> = finishes
            .iter()
            .filter(|finish| ended.contains(&finish.key.job_no.0))
            .copied()
            .collect();
        apply_hooks(connection, &done).await?;
        let before = columns.find_ended(connection, args.node).await?;
        for (at, finish) in round.iter().zip(&finishes) {
            let job = finish.key.job_no.0;
            if !ended.contains(&job) {
                results[*at] = if before.contains(&job) {
                    FinishResult::AlreadyDone
                } else {
                    FinishResult::LeaseLost
                };
            }
        }
    }
    apply_attachments(connection, &args.batch, &results).await?;
    correct_skips(connection, &args.batch, &results).await?;
    // The load is updated only for jobs whose rows are already locked, because waiting here for the
    // rows of other jobs would break the lock order.
    let done = args.batch.iter().zip(&results).filter(|(_, result)| **result == FinishResult::Done);
    let stopped = done.map(|(finish, _)| finish).filter(|finish| stops_job(finish));
    let stopped: Vec<i64> = stopped.map(|finish| finish.key.job_no.0).collect();
    if !stopped.is_empty() {
        count_ended(connection, &stopped).await?;
    }
    Ok(results)
}

/// Corrects the recorded reason of scheduled runs that were skipped while results of attempts could
/// not be stored.
async fn correct_skips(
    connection: &Connection,
    batch: &[Finish],
    results: &[FinishResult],
) -> Tried<()> {
    let known = |result: &FinishResult| *result != FinishResult::LeaseLost;
    let done = batch.iter().zip(results).filter(|(_, result)| known(result));
    let (jobs, since): (Vec<i64>, Vec<i64>) = done
        .filter_map(|(end, _)| Some((end.key.job_no.0, end.unstored_since?.as_micros())))
        .unzip();
    if jobs.is_empty() {
        return Ok(());
    }
    let sql = sql!("finish_correct_skips");
    let (from, to) = (SkipReason::Overlap, SkipReason::EndNotStored);
    connection.rows(sql, &[&jobs, &since, &skip_reason_code(from), &skip_reason_code(to)]).await?;
    Ok(())
}

/// True if the job has no next run time after this attempt.
fn stops_job(finish: &Finish) -> bool {
    matches!(finish.then, Then::EndRun { stop_job: true, .. })
}

/// The columns that the store sends for every batch of results.
struct FinishColumns {
    keys: KeyColumns,
    fence: Vec<i32>,
    status: Vec<i16>,
    started_at: Vec<i64>,
    finished_at: Vec<i64>,
}

impl FinishColumns {
    fn new(finishes: &[&Finish]) -> Self {
        let all = || finishes.iter();
        Self {
            keys: all().map(|finish| finish.key).collect(),
            fence: all().map(|finish| fence(finish.fence)).collect(),
            status: all().map(|finish| AttemptStatus::from(finish.outcome).code()).collect(),
            started_at: all().map(|finish| finish.started_at.as_micros()).collect(),
            finished_at: all().map(|finish| finish.finished_at.as_micros()).collect(),
        }
    }

    async fn finish_plain(&self, connection: &Connection, args: &Args) -> Tried<Row> {
        let Self { keys, fence, status, started_at, finished_at } = self;
        connection
            .row(
                sql!("finish_plain"),
                &[
                    &args.node, &args.alpha, &keys.job_no, &keys.scheduled_at, &keys.sequence,
                    &keys.attempt, fence, status, started_at, finished_at,
                ],
            )
            .await
    }

    async fn finish(
        &self,
        connection: &Connection,
        args: &Args,
        finishes: &[&Finish],
    ) -> Tried<Row> {
        let Self { keys, fence, status, started_at, finished_at } = self;
        let all = || finishes.iter().map(|finish| &finish.results);
        let retry_at: Vec<Option<i64>> = finishes
            .iter()
            .map(|finish| match finish.then {
                Then::Retry { due } => micros(Some(due)),
                Then::EndRun { .. } => None,
            })
            .collect();
        let stop_job: Vec<bool> = finishes.iter().map(|finish| stops_job(finish)).collect();
        let next_at = || {
            finishes.iter().map(|finish| match finish.then {
                Then::EndRun { next_at, .. } => next_at,
                Then::Retry { .. } => None,
            })
        };
        let next_slot: Vec<Option<i32>> = next_at().map(slot).collect();
        let next_at: Vec<Option<i64>> = next_at().map(micros).collect();
        let judge: Vec<bool> = finishes.iter().map(|finish| finish.judge).collect();
        let priority: Vec<Option<i16>> =
            finishes.iter().map(|finish| priority(finish.priority)).collect();
        let error: Vec<Option<String>> = all().map(|results| text(&results.error)).collect();
        let output: Vec<Option<String>> = all().map(|results| text(&results.output)).collect();
        let crawled: Vec<Option<i64>> = all().map(|results| results.items_crawled).collect();
        let indexed: Vec<Option<i64>> = all().map(|results| results.items_indexed).collect();
        let cpu: Vec<Option<i64>> =
            all().map(|results| results.cpu_time.map(span_micros)).collect();
        let memory: Vec<Option<i64>> = all().map(|results| results.memory_peak_kb).collect();
        connection
            .row(
                sql!("finish"),
                &[
                    &args.node, &args.alpha, &keys.job_no, &keys.scheduled_at, &keys.sequence,
                    &keys.attempt, fence, status, started_at, finished_at, &retry_at, &stop_job,
                    &error, &output, &crawled, &indexed, &cpu, &memory, &next_at, &next_slot,
                    &judge, &priority,
                ],
            )
            .await
    }

    async fn find_ended(&self, connection: &Connection, node: i32) -> Tried<HashSet<i64>> {
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &self.keys;
        let sql = sql!("finish_classify");
        let rows = connection
            .rows(sql, &[&node, job_no, scheduled_at, sequence, attempt, &self.fence])
            .await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }
}

/// Stores dead letters and failure counts in the transaction that finishes the attempts. `done` has
/// at most one attempt per job. Usually there are no dead letters or failures to store, so no
/// statement is sent.
async fn apply_hooks(connection: &Connection, done: &[&Finish]) -> Tried<()> {
    let (mut dead, mut reasons) = (KeyColumns::default(), Vec::new());
    let (mut failed, mut pause_after) = (KeyColumns::default(), Vec::new());
    for finish in done {
        match finish.hook {
            Hook::None => {}
            Hook::CountFailure { pause_after: after } => {
                failed.push(finish.key);
                pause_after.push(i32::from(after));
            }
            Hook::DeadLetter(reason) => {
                dead.push(finish.key);
                reasons.push(reason.code());
            }
        }
    }
    if !reasons.is_empty() {
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &dead;
        let sql = sql!("finish_dead");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt, &reasons]).await?;
    }
    if !pause_after.is_empty() {
        let KeyColumns { job_no, scheduled_at, sequence, attempt } = &failed;
        let sql = sql!("finish_failing");
        connection.change(sql, &[job_no, scheduled_at, sequence, attempt, &pause_after]).await?;
    }
    Ok(())
}
