//! Ends one run: what waits of it is withdrawn, what runs is asked to end.

use evenkeel_core::AttemptKey;
use evenkeel_core::run::AttemptStatus;
use evenkeel_store::{Now, RunCancelled, Scope, StoreError};

use crate::PostgresStore;
use crate::columns::{get, key, micros, sequence};
use crate::error::{Failure, Tried};
use crate::pool::Connection;
use crate::withdraw::{Withdrawn, record};

struct Args {
    scheduled_at: i64,
    job_no: i64,
    sequence: i32,
    tenant: i32,
    now: Option<i64>,
}

/// Between two looks the run may change its place, but only so often: from the wakes to the queue,
/// to a worker, and back once.
const LOOKS: usize = 4;

pub(super) async fn cancel_run(
    store: &PostgresStore,
    scope: &Scope,
    key: AttemptKey,
    now: Now,
) -> Result<RunCancelled, StoreError> {
    let args = Args {
        scheduled_at: key.scheduled_at.as_micros(),
        job_no: key.job_no.0,
        sequence: sequence(key.sequence),
        tenant: scope.tenant.0,
        now: micros(now.literal()),
    };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<RunCancelled> {
    // Each statement waits for whoever moves the run at that moment, and sees where it went only
    // in the next one.
    for _ in 0..LOOKS {
        if let Some(withdrawn) = withdraw(connection, args).await? {
            return close(connection, args, withdrawn).await;
        }
        if let Some(key) = ask(connection, args).await? {
            return Ok(RunCancelled::Asked(key));
        }
    }
    let Args { scheduled_at, job_no, sequence, tenant, .. } = args;
    let sql = sql!("cancel_run_is_there");
    let row = connection.row(sql, &[scheduled_at, job_no, sequence, tenant]).await?;
    if get(&row, 1)? {
        return Err(Failure::Again);
    }
    Ok(if get(&row, 0)? { RunCancelled::Over } else { RunCancelled::NotFound })
}

async fn withdraw(connection: &Connection, args: &Args) -> Tried<Option<Withdrawn>> {
    let Args { scheduled_at, job_no, sequence, tenant, .. } = args;
    let sql = sql!("cancel_run_ready");
    let row = connection.maybe_row(sql, &[scheduled_at, job_no, sequence, tenant]).await?;
    if let Some(row) = row {
        return Ok(Some(Withdrawn::from_queue(&row)?));
    }
    let sql = sql!("cancel_run_delayed");
    let row = connection.maybe_row(sql, &[scheduled_at, job_no, sequence, tenant]).await?;
    row.as_ref().map(Withdrawn::from_wake).transpose()
}

/// The chain is over: its attempt never ran, or will not again.
async fn close(
    connection: &Connection,
    args: &Args,
    mut withdrawn: Withdrawn,
) -> Tried<RunCancelled> {
    let is_new = withdrawn.is_unfired_trigger();
    let sql = sql!("cancel_run_close_runs");
    let row = connection
        .row(sql, &[&args.job_no, &is_new, &args.scheduled_at, &args.sequence, &args.now])
        .await?;
    if is_new {
        withdrawn.prev = (get(&row, 0)?, get(&row, 1)?);
    }
    let (now, key): (i64, AttemptKey) = (get(&row, 2)?, withdrawn.key);
    record(connection, AttemptStatus::Cancelled, now, &[withdrawn]).await?;
    Ok(RunCancelled::Withdrawn(key))
}

async fn ask(connection: &Connection, args: &Args) -> Tried<Option<AttemptKey>> {
    let Args { scheduled_at, job_no, sequence, tenant, .. } = args;
    let sql = sql!("cancel_run_ask");
    let row = connection.maybe_row(sql, &[scheduled_at, job_no, sequence, tenant]).await?;
    row.map(|row| Ok(key(&row, 0)?)).transpose()
}
