//! The end of jobs.

use evenkeel_core::run::RunStatus;
use evenkeel_core::{JobId, RunKey};
use evenkeel_store::{Deleted, Now, Scope, StoreError};
use uuid::Uuid;

use crate::PostgresStore;
use crate::columns::{get, key, micros};
use crate::error::Tried;
use crate::pool::Connection;
use crate::withdraw::{Chains, close, withdraw};

struct Args {
    tenant: i32,
    id: Uuid,
    now: Option<i64>,
}

pub(super) async fn delete(
    store: &PostgresStore,
    scope: &Scope,
    id: JobId,
    now: Now,
) -> Result<Deleted, StoreError> {
    let args = Args { tenant: scope.tenant.0, id: id.0, now: micros(now.literal()) };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Deleted> {
    let sql = include_str!("../../queries/delete_job.sql");
    let Some(row) = connection.maybe_row(sql, &[&args.now, &args.id, &args.tenant]).await? else {
        return Ok(Deleted::NotFound);
    };
    let (job_no, now): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let mut withdrawn = withdraw(connection, &[job_no]).await?;
    let sql = include_str!("../../queries/delete_job_state.sql");
    let state = connection.row(sql, &[&job_no]).await?;
    let head = (get(&state, 1)?, get(&state, 2)?);
    let mut chains = [Chains { job_no, live: get(&state, 0)?, head }];
    // Until the state was locked, more could come.
    withdrawn.extend(withdraw(connection, &[job_no]).await?);
    close(connection, &mut chains, withdrawn, RunStatus::Cancelled, now).await?;
    let running = ask(connection, &chains[0]).await?;
    connection.change(include_str!("../../queries/delete_forget_change.sql"), &[&job_no]).await?;
    super::labels::forget(connection, job_no).await?;
    let sql = include_str!("../../queries/delete_count.sql");
    connection.change(sql, &[&job_no, &args.tenant]).await?;
    Ok(Deleted::Done(running))
}

/// Asks what runs of the job to end.
async fn ask(connection: &Connection, chains: &Chains) -> Tried<Vec<RunKey>> {
    if chains.live <= 0 {
        return Ok(Vec::new());
    }
    let sql = include_str!("../../queries/delete_cancel_running.sql");
    let rows = connection.rows(sql, &[&chains.job_no, &i64::from(chains.live)]).await?;
    let mut running = rows.iter().map(|row| Ok(key(row, 0)?)).collect::<Tried<Vec<RunKey>>>()?;
    running.sort_unstable();
    Ok(running)
}
