//! Reads the jobs that are due soon, and the delayed attempts.

use evenkeel_core::Timestamp;
use evenkeel_store::{DelayedAttempt, LookAhead};
use futures::future::try_join3;
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{due_job, get, key, maybe_priority, time};

pub(super) async fn look_ahead(
    connection: &Connection,
    shards: &[i16],
    until: Timestamp,
    limit: u32,
    now: Option<i64>,
) -> Tried<LookAhead> {
    let (until, limit) = (until.as_micros(), i64::from(limit));
    // All three statements are sent together to save time, because a triggered run cannot start
    // before they have finished.
    let (now, changed, delayed) = try_join3(
        connection.row(sql!("now"), &[&now]),
        connection.rows(sql!("look_ahead_changed"), &[&shards, &limit]),
        connection.rows(sql!("look_ahead_delayed"), &[&shards, &until, &limit]),
    )
    .await?;
    Ok(LookAhead {
        now: time(&now, 0)?,
        changed: changed.iter().map(due_job).collect::<Tried<_>>()?,
        delayed: delayed.iter().map(delayed_attempt).collect::<Tried<_>>()?,
    })
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
