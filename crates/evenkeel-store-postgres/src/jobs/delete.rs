//! The end of jobs.

use evenkeel_core::{Attempt, JobId, RunKey};
use evenkeel_store::{Deleted, Now, Scope, StoreError};
use uuid::Uuid;

use crate::PostgresStore;
use crate::columns::{KeyColumns, get, key, micros, sequence};
use crate::error::Tried;
use crate::pool::Connection;

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
    // Whoever claims or fires locks what waits before it locks the job's state: so does this.
    let mut withdrawn = withdraw(connection, job_no).await?;
    let sql = include_str!("../../queries/delete_job_state.sql");
    let state = connection.row(sql, &[&job_no]).await?;
    let live: i32 = get(&state, 0)?;
    let mut head: (Option<i64>, Option<i32>) = (get(&state, 1)?, get(&state, 2)?);
    let tenant: i32 = get(&state, 3)?;
    // Until the state was locked, more could come.
    withdrawn.extend(withdraw(connection, job_no).await?);
    withdrawn.sort_unstable_by_key(|withdrawn| withdrawn.key);
    for withdrawn in &mut withdrawn {
        if withdrawn.was_wake && withdrawn.key.attempt == Attempt::FIRST {
            // A trigger has its place among the job's chains when it is fired; this one never was.
            withdrawn.prev = head;
            head = (
                Some(withdrawn.key.scheduled_at.as_micros()),
                Some(sequence(withdrawn.key.sequence)),
            );
        }
    }
    record(connection, tenant, now, &withdrawn).await?;
    let chains = i32::try_from(withdrawn.len()).unwrap_or(i32::MAX);
    let left = live.saturating_sub(chains).max(0);
    let sql = include_str!("../../queries/delete_close_chains.sql");
    connection.change(sql, &[&job_no, &left, &head.0, &head.1]).await?;
    connection.change(include_str!("../../queries/delete_forget_change.sql"), &[&job_no]).await?;
    if left == 0 {
        return Ok(Deleted::Done(Vec::new()));
    }
    let sql = include_str!("../../queries/delete_cancel_running.sql");
    let rows = connection.rows(sql, &[&job_no, &i64::from(left)]).await?;
    let mut running = rows.iter().map(|row| Ok(key(row, 0)?)).collect::<Tried<Vec<RunKey>>>()?;
    running.sort_unstable();
    Ok(Deleted::Done(running))
}

/// An attempt that waited and no longer does.
pub(crate) struct Withdrawn {
    pub(crate) key: RunKey,
    pub(crate) was_wake: bool,
    pub(crate) fence: i32,
    pub(crate) crashes: i16,
    pub(crate) prev: (Option<i64>, Option<i32>),
}

async fn withdraw(connection: &Connection, job_no: i64) -> Tried<Vec<Withdrawn>> {
    let mut withdrawn = Vec::new();
    let sql = include_str!("../../queries/delete_withdraw_ready.sql");
    for row in connection.rows(sql, &[&job_no]).await? {
        withdrawn.push(Withdrawn {
            key: key(&row, 0)?,
            was_wake: false,
            fence: get(&row, 4)?,
            crashes: get(&row, 5)?,
            prev: (get(&row, 6)?, get(&row, 7)?),
        });
    }
    let sql = include_str!("../../queries/delete_withdraw_wakes.sql");
    for row in connection.rows(sql, &[&job_no]).await? {
        let key = key(&row, 0)?;
        withdrawn.push(Withdrawn { key, was_wake: true, fence: 0, crashes: 0, prev: (None, None) });
    }
    Ok(withdrawn)
}

pub(crate) async fn record(
    connection: &Connection,
    tenant: i32,
    now: i64,
    withdrawn: &[Withdrawn],
) -> Tried<()> {
    if withdrawn.is_empty() {
        return Ok(());
    }
    let keys: KeyColumns = withdrawn.iter().map(|withdrawn| withdrawn.key).collect();
    let fences: Vec<i32> = withdrawn.iter().map(|withdrawn| withdrawn.fence).collect();
    let crashes: Vec<i16> = withdrawn.iter().map(|withdrawn| withdrawn.crashes).collect();
    let prev_at: Vec<Option<i64>> = withdrawn.iter().map(|withdrawn| withdrawn.prev.0).collect();
    let prev_sequence: Vec<Option<i32>> =
        withdrawn.iter().map(|withdrawn| withdrawn.prev.1).collect();
    let KeyColumns { job_no, scheduled_at, sequence, attempt } = &keys;
    connection
        .change(
            include_str!("../../queries/delete_record_withdrawn.sql"),
            &[
                &tenant,
                &now,
                job_no,
                scheduled_at,
                sequence,
                attempt,
                &fences,
                &crashes,
                &prev_at,
                &prev_sequence,
            ],
        )
        .await?;
    Ok(())
}
