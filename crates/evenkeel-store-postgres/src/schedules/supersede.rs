//! A newer time takes the place of what goes on.

use std::collections::HashMap;

use evenkeel_core::JobNo;
use evenkeel_core::run::RunStatus;
use evenkeel_store::{Now, StoreError};

use crate::PostgresStore;
use crate::columns::{get, job_numbers, micros};
use crate::error::Tried;
use crate::pool::Connection;
use crate::withdraw::{Chains, close, withdraw};

struct Args {
    jobs: Vec<i64>,
    now: Option<i64>,
}

pub(super) async fn supersede(
    store: &PostgresStore,
    jobs: &[JobNo],
    now: Now,
) -> Result<(), StoreError> {
    let args = Args { jobs: job_numbers(jobs), now: micros(now.literal()) };
    if args.jobs.is_empty() {
        return Ok(());
    }
    store
        .hot
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

/// Locks are taken in the order of a finish and a claim: what runs, what waits, then the jobs.
async fn run(connection: &Connection, args: &Args) -> Tried<()> {
    let executions = ask(connection, &args.jobs).await?;
    let mut withdrawn = withdraw(connection, &args.jobs).await?;
    let sql = include_str!("../../queries/supersede_lock.sql");
    let rows = connection.rows(sql, &[&args.now, &args.jobs]).await?;
    let Some(first) = rows.first() else { return Ok(()) };
    let now: i64 = get(first, 0)?;
    let mut chains = Vec::with_capacity(rows.len());
    let mut begun: Vec<i64> = Vec::new();
    for row in &rows {
        let job_no: i64 = get(row, 1)?;
        if executions.get(&job_no) != Some(&get::<i64>(row, 5)?) {
            begun.push(job_no);
        }
        chains.push(Chains { job_no, live: get(row, 2)?, head: (get(row, 3)?, get(row, 4)?) });
    }
    // Until the jobs were locked, more could come, and begin.
    withdrawn.extend(withdraw(connection, &args.jobs).await?);
    close(connection, &mut chains, withdrawn, RunStatus::Superseded, now).await?;
    if !begun.is_empty() {
        ask(connection, &begun).await?;
    }
    Ok(())
}

/// Asks what runs of the jobs to end, and tells how many attempts each has had so far.
async fn ask(connection: &Connection, jobs: &[i64]) -> Tried<HashMap<i64, i64>> {
    let sql = include_str!("../../queries/supersede_ask.sql");
    let rows = connection.rows(sql, &[&jobs]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}
