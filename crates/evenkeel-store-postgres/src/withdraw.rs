//! What waits of jobs is taken away: its chains are over.

use std::collections::{HashMap, HashSet};

use evenkeel_core::run::AttemptStatus;
use evenkeel_core::{AttemptKey, AttemptNo};
use tokio_postgres::Row;

use crate::columns::{KeyColumns, get, key, sequence};
use crate::error::Tried;
use crate::pool::Connection;

/// An attempt that waited and no longer does.
pub(crate) struct Withdrawn {
    pub(crate) key: AttemptKey,
    pub(crate) prev: Link,
    was_wake: bool,
    tenant: i32,
    pub(crate) fence: i32,
    pub(crate) crashes: i16,
}

/// Points at a chain, if there is one.
pub(crate) type Link = (Option<i64>, Option<i32>);

impl Withdrawn {
    pub(crate) fn from_queue(row: &Row) -> Tried<Self> {
        Ok(Self {
            key: key(row, 0)?,
            was_wake: false,
            tenant: get(row, 4)?,
            fence: get(row, 5)?,
            crashes: get(row, 6)?,
            prev: (get(row, 7)?, get(row, 8)?),
        })
    }

    pub(crate) fn from_wake(row: &Row) -> Tried<Self> {
        Ok(Self {
            key: key(row, 0)?,
            was_wake: true,
            tenant: get(row, 4)?,
            fence: 0,
            crashes: 0,
            prev: (None, None),
        })
    }

    /// A trigger gets its place among the job's chains when it is fired; this one never was.
    pub(crate) fn is_unfired_trigger(&self) -> bool {
        self.was_wake && self.key.attempt == AttemptNo::FIRST
    }
}

/// The chains of a job whose row is locked.
pub(crate) struct Chains {
    pub(crate) job_no: i64,
    pub(crate) live: i32,
    pub(crate) head: Link,
}

/// Takes away what waits of jobs. Whoever claims or fires locks what waits before it locks the
/// job's state: so must the caller.
pub(crate) async fn withdraw(connection: &Connection, jobs: &[i64]) -> Tried<Vec<Withdrawn>> {
    let mut withdrawn = Vec::new();
    let sql = sql!("command_withdraw_ready");
    for row in connection.rows(sql, &[&jobs]).await? {
        withdrawn.push(Withdrawn::from_queue(&row)?);
    }
    let sql = sql!("command_withdraw_delayed");
    for row in connection.rows(sql, &[&jobs]).await? {
        withdrawn.push(Withdrawn::from_wake(&row)?);
    }
    Ok(withdrawn)
}

/// Records what was withdrawn, and that its chains are over. Says what, by job and in order.
pub(crate) async fn close(
    connection: &Connection,
    chains: &mut [Chains],
    mut withdrawn: Vec<Withdrawn>,
    status: AttemptStatus,
    now: i64,
) -> Tried<Vec<AttemptKey>> {
    if withdrawn.is_empty() {
        return Ok(Vec::new());
    }
    withdrawn.sort_unstable_by_key(|withdrawn| (withdrawn.key.job_no, withdrawn.key));
    let mut closed = HashSet::new();
    let mut of_job: HashMap<i64, &mut Chains> =
        chains.iter_mut().map(|chains| (chains.job_no, chains)).collect();
    for withdrawn in &mut withdrawn {
        let key = withdrawn.key;
        let Some(chains) = of_job.get_mut(&key.job_no.0) else { continue };
        if withdrawn.is_unfired_trigger() {
            withdrawn.prev = chains.head;
            chains.head = (Some(key.scheduled_at.as_micros()), Some(sequence(key.sequence)));
        }
        chains.live = chains.live.saturating_sub(1).max(0);
        closed.insert(chains.job_no);
    }
    let mut columns = ChainColumns::default();
    chains.iter().filter(|chains| closed.contains(&chains.job_no)).for_each(|it| columns.push(it));
    record(connection, status, now, &withdrawn).await?;
    let ChainColumns { job_no, live, head_at, head_sequence } = &columns;
    let sql = sql!("command_close_runs");
    connection.change(sql, &[job_no, live, head_at, head_sequence, &status.code()]).await?;
    Ok(withdrawn.into_iter().map(|withdrawn| withdrawn.key).collect())
}

/// Chains as arrays.
#[derive(Default)]
struct ChainColumns {
    job_no: Vec<i64>,
    live: Vec<i32>,
    head_at: Vec<Option<i64>>,
    head_sequence: Vec<Option<i32>>,
}

impl ChainColumns {
    fn push(&mut self, chains: &Chains) {
        self.job_no.push(chains.job_no);
        self.live.push(chains.live);
        self.head_at.push(chains.head.0);
        self.head_sequence.push(chains.head.1);
    }
}

pub(crate) async fn record(
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
