//! What the scheduler loads into memory.

use evenkeel_core::{JobNo, Shard, Slot, Timestamp};
use evenkeel_store::{
    DelayedAttempt, DueJob, LookAhead, Now, StoreError, attempt_key_from_columns,
};
use futures::future::try_join3;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{DUE_JOB_COLUMNS, due_job, get, maybe_priority, micros, shards, time};

fn due_jobs(rows: &[Row]) -> Tried<Vec<DueJob>> {
    rows.iter().map(due_job).collect()
}

pub(super) async fn load_due(
    store: &PostgresStore,
    shard: Shard,
    until: Slot,
    after: Option<JobNo>,
    limit: u32,
) -> Result<Vec<DueJob>, StoreError> {
    let after = after.map_or(i64::MIN, |job| job.0);
    let args = (i16::from(shard.0), until.0, after, i64::from(limit));
    store
        .hot
        .run(args, |connection, args| async move {
            let (shard, until, after, limit) = &*args;
            let sql = sql!("load_due");
            due_jobs(&connection.rows(sql, &[shard, until, after, limit]).await?)
        })
        .await
}

pub(super) async fn load_jobs(
    store: &PostgresStore,
    jobs: &[JobNo],
) -> Result<Vec<DueJob>, StoreError> {
    let jobs: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    store
        .hot
        .run(jobs, |connection, jobs| async move {
            let sql = sql!("load_jobs");
            due_jobs(&connection.rows(sql, &[&*jobs]).await?)
        })
        .await
}

pub(super) async fn look_ahead(
    store: &PostgresStore,
    of: &[Shard],
    until: Timestamp,
    limit: u32,
    now: Now,
) -> Result<LookAhead, StoreError> {
    let args = (shards(of), until.as_micros(), i64::from(limit), micros(now.literal()));
    store
        .hot
        .run(args, |connection, args| async move {
            let (shards, until, limit, now) = &*args;
            // All three are sent at once: this is on the way from a trigger to its start.
            let (now, changed, wakes) = try_join3(
                connection.row(sql!("now"), &[now]),
                connection.rows(sql!("look_ahead_changed"), &[shards, limit]),
                connection.rows(sql!("look_ahead_delayed"), &[shards, until, limit]),
            )
            .await?;
            Ok(LookAhead {
                now: time(&now, 0)?,
                changed: due_jobs(&changed)?,
                delayed: wakes.iter().map(due_wake).collect::<Tried<_>>()?,
            })
        })
        .await
}

fn due_wake(row: &Row) -> Tried<DelayedAttempt> {
    let job = due_job(row)?;
    let at = |nth| DUE_JOB_COLUMNS + nth;
    let key =
        attempt_key_from_columns(get(row, at(1))?, job.no.0, get(row, at(2))?, get(row, at(3))?)?;
    Ok(DelayedAttempt {
        due: time(row, at(0))?,
        key,
        has_checkpoint: get(row, at(4))?,
        priority: maybe_priority(row, at(5))?,
        job,
    })
}
