//! Deletes pages.

use evenkeel_store::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get};

pub(super) async fn prune_pages(connection: &Connection, job: i64, pages: &[Uuid]) -> Tried<u64> {
    connection.maybe_row(sql!("prune_pages_lock"), &[&job]).await?;
    let deleted = connection.row(sql!("prune_pages"), &[&pages, &job]).await?;
    subtract_usage(connection, job, &deleted).await
}

/// Subtracts deleted pages from the stored page usage of the job. Returns how many pages were
/// deleted.
async fn subtract_usage(connection: &Connection, job: i64, deleted: &Row) -> Tried<u64> {
    let (pages, bytes): (i64, i64) = (get(deleted, 0)?, get(deleted, 1)?);
    if pages > 0 {
        connection.change(sql!("save_pages_count"), &[&job, &-bytes, &-pages]).await?;
    }
    count(deleted, 0)
}

/// Deletes the pages of deleted jobs, one transaction per job.
pub(super) async fn clear(store: &PostgresStore, limit: u32) -> Result<u64, StoreError> {
    let limit = u64::from(limit);
    let (mut cleared, mut after) = (0, 0_i64);
    while cleared < limit {
        // Reads the next deleted jobs that still have pages.
        let params = params![after, (limit - cleared).cast_signed()];
        let jobs = store.api.rows(sql!("clear_pages_jobs"), params, |row| get(row, 0)).await?;
        let Some(last) = jobs.last() else { break };
        after = *last;
        for job in jobs {
            let limit_left = (limit - cleared).cast_signed();
            if limit_left == 0 {
                break;
            }
            cleared += transaction!(store.api, |connection| {
                clear_one(connection, job, limit_left).await
            })?;
        }
    }
    Ok(cleared)
}

/// Deletes pages of one deleted job, unless another transaction is deleting them.
async fn clear_one(connection: &Connection, job: i64, limit_left: i64) -> Tried<u64> {
    if connection.maybe_row(sql!("clear_pages_lock"), &[&job]).await?.is_none() {
        return Ok(0);
    }
    let deleted = connection.row(sql!("clear_pages"), &[&job, &limit_left]).await?;
    let pages = subtract_usage(connection, job, &deleted).await?;
    if pages.cast_signed() < limit_left {
        connection.change(sql!("clear_pages_usage"), &[&job]).await?;
    }
    Ok(pages)
}
