//! Cancels runs. A pending attempt is withdrawn from the queue or from the delayed attempts. A
//! running attempt is marked as cancelled, and its node stops it.

use std::collections::{HashMap, HashSet};

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo};
use evenkeel_store::{Now, RunCancelled, Scope, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::rows::{KeyColumns, get, key, micros, sequence};

struct Args {
    run: AttemptKey,
    tenant: i32,
    now: Option<i64>,
}

/// How many times the search for a run is repeated. Between two statements a run can move from the
/// delayed attempts to the queue, to a worker, and back once.
const ROUNDS: usize = 4;

pub(super) async fn cancel_run(
    store: &PostgresStore,
    scope: &Scope,
    key: AttemptKey,
    now: Now,
) -> Result<RunCancelled, StoreError> {
    let args = Args { run: key, tenant: scope.tenant.0, now: micros(now.literal()) };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<RunCancelled> {
    // If another transaction is moving the run to another table, a statement waits for it and finds
    // nothing, and only the next statement finds the run.
    for _ in 0..ROUNDS {
        if let Some(withdrawn) = withdraw_run(connection, args.run, args.tenant).await? {
            return close_run(connection, args, withdrawn).await;
        }
        if let Some(key) = mark_cancelled(connection, args).await? {
            return Ok(RunCancelled::Asked(key));
        }
    }
    let (scheduled_at, job_no, sequence) = run_columns(args.run);
    let sql = sql!("cancel_run_find");
    let row = connection.row(sql, &[&scheduled_at, &job_no, &sequence, &args.tenant]).await?;
    if get(&row, "is_active")? {
        return Err(Failure::Again);
    }
    Ok(if get(&row, "exists")? { RunCancelled::Over } else { RunCancelled::NotFound })
}

fn run_columns(run: AttemptKey) -> (i64, i64, i32) {
    (run.scheduled_at.as_micros(), run.job_no.0, sequence(run.sequence))
}

/// Deletes the pending attempt of a run from the queue or the delayed attempts.
pub(super) async fn withdraw_run(
    connection: &Connection,
    run: AttemptKey,
    tenant: i32,
) -> Tried<Option<Withdrawn>> {
    let (scheduled_at, job_no, sequence) = run_columns(run);
    let params: Params<'_> = &[&scheduled_at, &job_no, &sequence, &tenant];
    if let Some(row) = connection.maybe_row(sql!("cancel_run_ready"), params).await? {
        return Ok(Some(Withdrawn::from_queue(&row)?));
    }
    let row = connection.maybe_row(sql!("cancel_run_delayed"), params).await?;
    row.as_ref().map(Withdrawn::from_delayed).transpose()
}

/// Records the withdrawn attempt as cancelled and ends its run.
async fn close_run(
    connection: &Connection,
    args: &Args,
    mut withdrawn: Withdrawn,
) -> Tried<RunCancelled> {
    let is_new = withdrawn.is_unfired_trigger();
    let (scheduled_at, job_no, sequence) = run_columns(args.run);
    let sql = sql!("cancel_run_close_runs");
    let row = connection.row(sql, &[&job_no, &is_new, &scheduled_at, &sequence, &args.now]).await?;
    if is_new {
        withdrawn.prev = (get(&row, "head_at")?, get(&row, "head_sequence")?);
    }
    let (now, key): (i64, AttemptKey) = (get(&row, "now")?, withdrawn.key);
    record_withdrawn(connection, AttemptStatus::Cancelled, now, &[withdrawn]).await?;
    Ok(RunCancelled::Withdrawn(key))
}

/// Marks the running attempt of the run as cancelled, so that its node stops it.
async fn mark_cancelled(connection: &Connection, args: &Args) -> Tried<Option<AttemptKey>> {
    let (scheduled_at, job_no, sequence) = run_columns(args.run);
    let params: Params<'_> = &[&scheduled_at, &job_no, &sequence, &args.tenant];
    let row = connection.maybe_row(sql!("cancel_run_mark"), params).await?;
    row.map(|row| Ok(key(&row)?)).transpose()
}

/// An attempt that was pending and has been deleted from the queue or the delayed attempts.
pub(crate) struct Withdrawn {
    pub(crate) key: AttemptKey,
    pub(crate) prev: Link,
    was_delayed: bool,
    tenant: i32,
    pub(crate) fence: i32,
    pub(crate) crashes: i16,
}

/// Scheduled time and sequence of a run, or `None` for both columns if there is no run.
pub(crate) type Link = (Option<i64>, Option<i32>);

impl Withdrawn {
    pub(crate) fn from_queue(row: &Row) -> Tried<Self> {
        Ok(Self {
            key: key(row)?,
            was_delayed: false,
            tenant: get(row, "tenant_no")?,
            fence: get(row, "fence")?,
            crashes: get(row, "crashes")?,
            prev: (get(row, "prev_at")?, get(row, "prev_sequence")?),
        })
    }

    pub(crate) fn from_delayed(row: &Row) -> Tried<Self> {
        Ok(Self {
            key: key(row)?,
            was_delayed: true,
            tenant: get(row, "tenant_no")?,
            fence: 0,
            crashes: 0,
            prev: (None, None),
        })
    }

    /// True for a triggered run that was never fired and so is not linked to the job's other runs
    /// yet.
    pub(crate) fn is_unfired_trigger(&self) -> bool {
        self.was_delayed && self.key.attempt == AttemptNo::FIRST
    }
}

/// The active runs of a job whose row is locked, and the newest run of that job.
pub(crate) struct JobRuns {
    pub(crate) job_no: i64,
    pub(crate) live: i32,
    pub(crate) head: Link,
}

impl JobRuns {
    pub(crate) fn read(row: &Row) -> Tried<Self> {
        Ok(Self {
            job_no: get(row, "job_no")?,
            live: get(row, "live")?,
            head: (get(row, "head_at")?, get(row, "head_sequence")?),
        })
    }
}

/// Deletes all pending attempts of `jobs`. The caller must lock the rows of these attempts before
/// the rows of the job states, as claiming and firing do.
pub(crate) async fn withdraw_pending(
    connection: &Connection,
    jobs: &[i64],
) -> Tried<Vec<Withdrawn>> {
    let mut withdrawn = Vec::new();
    let sql = sql!("command_withdraw_ready");
    for row in connection.rows(sql, &[&jobs]).await? {
        withdrawn.push(Withdrawn::from_queue(&row)?);
    }
    let sql = sql!("command_withdraw_delayed");
    for row in connection.rows(sql, &[&jobs]).await? {
        withdrawn.push(Withdrawn::from_delayed(&row)?);
    }
    Ok(withdrawn)
}

/// Records withdrawn attempts with `status` and ends their runs. Returns the keys of the attempts,
/// sorted by job and key.
pub(crate) async fn close_runs(
    connection: &Connection,
    runs: &mut [JobRuns],
    mut withdrawn: Vec<Withdrawn>,
    status: AttemptStatus,
    now: i64,
) -> Tried<Vec<AttemptKey>> {
    if withdrawn.is_empty() {
        return Ok(Vec::new());
    }
    withdrawn.sort_unstable_by_key(|withdrawn| (withdrawn.key.job_no, withdrawn.key));
    let mut closed = HashSet::new();
    let mut of_job: HashMap<i64, &mut JobRuns> =
        runs.iter_mut().map(|runs| (runs.job_no, runs)).collect();
    for withdrawn in &mut withdrawn {
        let key = withdrawn.key;
        let Some(runs) = of_job.get_mut(&key.job_no.0) else { continue };
        if withdrawn.is_unfired_trigger() {
            withdrawn.prev = runs.head;
            runs.head = (Some(key.scheduled_at.as_micros()), Some(sequence(key.sequence)));
        }
        runs.live = runs.live.saturating_sub(1).max(0);
        closed.insert(runs.job_no);
    }
    let mut columns = RunColumns::default();
    runs.iter().filter(|runs| closed.contains(&runs.job_no)).for_each(|runs| columns.push(runs));
    record_withdrawn(connection, status, now, &withdrawn).await?;
    let RunColumns { job_no, live, head_at, head_sequence } = &columns;
    let sql = sql!("command_close_runs");
    connection.change(sql, &[job_no, live, head_at, head_sequence, &status.code()]).await?;
    Ok(withdrawn.into_iter().map(|withdrawn| withdrawn.key).collect())
}

/// [`JobRuns`] as arrays.
#[derive(Default)]
struct RunColumns {
    job_no: Vec<i64>,
    live: Vec<i32>,
    head_at: Vec<Option<i64>>,
    head_sequence: Vec<Option<i32>>,
}

impl RunColumns {
    fn push(&mut self, runs: &JobRuns) {
        self.job_no.push(runs.job_no);
        self.live.push(runs.live);
        self.head_at.push(runs.head.0);
        self.head_sequence.push(runs.head.1);
    }
}

pub(crate) async fn record_withdrawn(
    connection: &Connection,
    status: AttemptStatus,
    now: i64,
    withdrawn: &[Withdrawn],
) -> Tried<()> {
    let keys: KeyColumns = withdrawn.iter().map(|withdrawn| withdrawn.key).collect();
    let tenants: Vec<i32> = withdrawn.iter().map(|withdrawn| withdrawn.tenant).collect();
    let fences: Vec<i32> = withdrawn.iter().map(|withdrawn| withdrawn.fence).collect();
    let crashes: Vec<i16> = withdrawn.iter().map(|withdrawn| withdrawn.crashes).collect();
    let prev_at: Vec<Option<i64>> = withdrawn.iter().map(|withdrawn| withdrawn.prev.0).collect();
    let prev_sequence: Vec<Option<i32>> =
        withdrawn.iter().map(|withdrawn| withdrawn.prev.1).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    connection
        .change(
            sql!("command_record_withdrawn"),
            &[
                &status.code(),
                &now,
                job_no,
                scheduled_at,
                sequence,
                attempt,
                &tenants,
                &fences,
                &crashes,
                &prev_at,
                &prev_sequence,
            ],
        )
        .await?;
    Ok(())
}
