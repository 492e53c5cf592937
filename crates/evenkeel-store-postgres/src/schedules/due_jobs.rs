//! Loads the jobs that are due soon, and the delayed attempts.

use evenkeel_core::{JobNo, Shard, Slot, Timestamp};
use evenkeel_store::{DelayedAttempt, DueJob, LookAhead, Now, StoreError};
use futures::future::try_join3;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{due_job, get, key, maybe_priority, micros, shards, time};

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
            // All three statements are sent together, because a triggered run cannot start before
            // they have finished.
            let (now, changed, delayed) = try_join3(
                connection.row(sql!("now"), &[now]),
                connection.rows(sql!("look_ahead_changed"), &[shards, limit]),
                connection.rows(sql!("look_ahead_delayed"), &[shards, until, limit]),
            )
            .await?;
            Ok(LookAhead {
                now: time(&now, 0)?,
                changed: due_jobs(&changed)?,
                delayed: delayed.iter().map(delayed_attempt).collect::<Tried<_>>()?,
            })
        })
        .await
}

fn delayed_attempt(row: &Row) -> Tried<DelayedAttempt> {
    Ok(DelayedAttempt {
        due: time(row, "due")?,
        key: key(row)?,
        has_checkpoint: get(row, "has_checkpoint")?,
        priority: maybe_priority(row, "priority")?,
        job: due_job(row)?,
    })
}
