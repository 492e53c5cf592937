//! Cancels runs. A pending attempt is withdrawn from the queue or from the delayed attempts. A
//! running attempt is marked as cancelled, and its node stops it.

use std::collections::{HashMap, HashSet};

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo};
use evenkeel_store::RunCancelled;
use tokio_postgres::Row;

use crate::connection::{Connection, Params};
use crate::error::{Failure, Tried};
use crate::rows::{KeyColumns, column, get, key, key_columns, sequence};

/// How many times the search for a run is repeated. Between two statements a run can move from the
/// delayed attempts to the queue, to a worker, and back once.
const ROUNDS: usize = 4;

pub(super) async fn cancel_run(
    connection: &Connection,
    run: AttemptKey,
    tenant: i32,
    now: Option<i64>,
) -> Tried<RunCancelled> {
    let (scheduled_at, job_no, sequence, _) = key_columns(run);
    let params: Params<'_> = &[&scheduled_at, &job_no, &sequence, &tenant];
    // A statement that waits for a transaction which moves the run to another table finds nothing;
    // only the next statement finds the run.
    for _ in 0..ROUNDS {
        if let Some(withdrawn) = withdraw_run(connection, run, tenant).await? {
            return close_run(connection, withdrawn, now).await;
        }
        if let Some(row) = connection.maybe_row(sql!("cancel_run_mark"), params).await? {
            return Ok(RunCancelled::Asked(key(&row)?));
        }
    }
    let row = connection.row(sql!("cancel_run_find"), params).await?;
    if get(&row, "is_active")? {
        return Err(Failure::Again);
    }
    Ok(if get(&row, "exists")? { RunCancelled::Over } else { RunCancelled::NotFound })
}

/// Deletes the pending attempt of a run from the queue or the delayed attempts.
pub(super) async fn withdraw_run(
    connection: &Connection,
    run: AttemptKey,
    tenant: i32,
) -> Tried<Option<Withdrawn>> {
    let (scheduled_at, job_no, sequence, _) = key_columns(run);
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
    mut withdrawn: Withdrawn,
    now: Option<i64>,
) -> Tried<RunCancelled> {
    let is_new = withdrawn.is_unfired_trigger();
    let (scheduled_at, job_no, sequence, _) = key_columns(withdrawn.key);
    let params: Params<'_> = &[&job_no, &is_new, &scheduled_at, &sequence, &now];
    let row = connection.row(sql!("cancel_run_close_runs"), params).await?;
    if is_new {
        withdrawn.prev = (get(&row, "head_at")?, get(&row, "head_sequence")?);
    }
    let (now, key): (i64, AttemptKey) = (get(&row, "now")?, withdrawn.key);
    record_withdrawn(connection, AttemptStatus::Cancelled, now, &[withdrawn]).await?;
    Ok(RunCancelled::Withdrawn(key))
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
    fn from_queue(row: &Row) -> Tried<Self> {
        Ok(Self {
            was_delayed: false,
            fence: get(row, "fence")?,
            crashes: get(row, "crashes")?,
            prev: (get(row, "prev_at")?, get(row, "prev_sequence")?),
            ..Self::from_delayed(row)?
        })
    }

    fn from_delayed(row: &Row) -> Tried<Self> {
        Ok(Self {
            key: key(row)?,
            was_delayed: true,
            tenant: get(row, "tenant_no")?,
            fence: 0,
            crashes: 0,
            prev: (None, None),
        })
    }

    pub(crate) fn read_all(queued: &[Row], delayed: &[Row]) -> Tried<Vec<Self>> {
        queued.iter().map(Self::from_queue).chain(delayed.iter().map(Self::from_delayed)).collect()
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
    let queued = connection.rows(sql!("command_withdraw_ready"), &[&jobs]).await?;
    let delayed = connection.rows(sql!("command_withdraw_delayed"), &[&jobs]).await?;
    Withdrawn::read_all(&queued, &delayed)
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
    record_withdrawn(connection, status, now, &withdrawn).await?;
    let closed: Vec<&JobRuns> = runs.iter().filter(|runs| closed.contains(&runs.job_no)).collect();
    let params: Params<'_> = &[
        &column(&closed, |runs| runs.job_no),
        &column(&closed, |runs| runs.live),
        &column(&closed, |runs| runs.head.0),
        &column(&closed, |runs| runs.head.1),
        &status.code(),
    ];
    connection.change(sql!("command_close_runs"), params).await?;
    Ok(withdrawn.into_iter().map(|withdrawn| withdrawn.key).collect())
}

async fn record_withdrawn(
    connection: &Connection,
    status: AttemptStatus,
    now: i64,
    withdrawn: &[Withdrawn],
) -> Tried<()> {
    let keys: KeyColumns = withdrawn.iter().map(|withdrawn| withdrawn.key).collect();
    let params: Params<'_> = &[
        &status.code(),
        &now,
        &keys.job_no,
        &keys.scheduled_at,
        &keys.sequence,
        &keys.attempt,
        &column(withdrawn, |withdrawn| withdrawn.tenant),
        &column(withdrawn, |withdrawn| withdrawn.fence),
        &column(withdrawn, |withdrawn| withdrawn.crashes),
        &column(withdrawn, |withdrawn| withdrawn.prev.0),
        &column(withdrawn, |withdrawn| withdrawn.prev.1),
    ];
    connection.change(sql!("command_record_withdrawn"), params).await?;
    Ok(())
}
