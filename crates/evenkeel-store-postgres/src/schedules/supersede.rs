//! A newer time takes the place of what goes on.

use std::collections::HashMap;

use evenkeel_core::JobNo;
use evenkeel_core::run::RunStatus;
use evenkeel_store::{Now, StoreError};

use crate::PostgresStore;
use crate::columns::{get, job_numbers, micros};
use crate::error::Tried;
use crate::pool::Connection;
use crate::withdraw::{Chains, Withdrawn, close, withdraw};

/// What changes its place between two looks is found by another, but not for ever: whoever wants a
/// job replaced comes again as long as it is busy.
const LOOKS: usize = 4;

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
    store
        .hot
        .run(args, |connection, args| async move {
            let mut jobs = args.jobs.clone();
            for _ in 0..LOOKS {
                if jobs.is_empty() {
                    break;
                }
                // Each in a transaction of its own: with the rows of jobs locked, to wait for what
                // runs or waits of them would be the wrong order.
                jobs = connection.transaction(run(&connection, &jobs, args.now)).await?;
            }
            Ok(())
        })
        .await
}

/// Locks in the order of a finish and a claim: what runs, what waits, then the jobs. Says of which
/// jobs something has begun meanwhile, or waits.
async fn run(connection: &Connection, jobs: &[i64], now: Option<i64>) -> Tried<Vec<i64>> {
    let executions = ask(connection, jobs).await?;
    let withdrawn = withdraw(connection, jobs).await?;
    if !withdrawn.is_empty() {
        end(connection, withdrawn, now).await?;
    }
    let sql = include_str!("../../queries/supersede_look.sql");
    let mut again = Vec::new();
    for row in connection.rows(sql, &[&jobs]).await? {
        let (job_no, executions_now, waits): (i64, i64, bool) =
            (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        if waits || executions.get(&job_no) != Some(&executions_now) {
            again.push(job_no);
        }
    }
    Ok(again)
}

/// Asks what runs of the jobs to end, and tells how many attempts each has had so far.
async fn ask(connection: &Connection, jobs: &[i64]) -> Tried<HashMap<i64, i64>> {
    let sql = include_str!("../../queries/supersede_ask.sql");
    let rows = connection.rows(sql, &[&jobs]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
}

async fn end(connection: &Connection, withdrawn: Vec<Withdrawn>, now: Option<i64>) -> Tried<()> {
    let jobs: Vec<JobNo> = withdrawn.iter().map(|withdrawn| withdrawn.key.job_no).collect();
    let sql = include_str!("../../queries/supersede_lock.sql");
    let rows = connection.rows(sql, &[&now, &job_numbers(&jobs)]).await?;
    let Some(first) = rows.first() else { return Ok(()) };
    let now: i64 = get(first, 0)?;
    let read = |row| {
        Ok(Chains { job_no: get(row, 1)?, live: get(row, 2)?, head: (get(row, 3)?, get(row, 4)?) })
    };
    let mut chains = rows.iter().map(read).collect::<Tried<Vec<Chains>>>()?;
    close(connection, &mut chains, withdrawn, RunStatus::Superseded, now).await
}
