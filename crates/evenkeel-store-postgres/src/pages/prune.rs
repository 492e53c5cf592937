//! Deletes pages.

use evenkeel_core::{JobNo, PageId};
use evenkeel_store::StoreError;
use tokio_postgres::Row;

use super::ids;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get};

pub(super) async fn prune_pages(
    store: &PostgresStore,
    job: JobNo,
    pages: &[PageId],
) -> Result<u64, StoreError> {
    let args = (ids(pages), job.0);
    store
        .api
        .run(args, |connection, args| async move {
            let body = async {
                let (pages, job) = &*args;
                let lock = sql!("prune_pages_lock");
                connection.maybe_row(lock, &[job]).await?;
                let sql = sql!("prune_pages");
                subtract_usage(&connection, *job, &connection.row(sql, &[pages, job]).await?).await
            };
            connection.transaction(body).await
        })
        .await
}

/// Subtracts deleted pages from the job's stored usage. Returns how many pages were deleted.
async fn subtract_usage(connection: &Connection, job: i64, deleted: &Row) -> Tried<u64> {
    let (pages, bytes): (i64, i64) = (get(deleted, 0)?, get(deleted, 1)?);
    if pages > 0 {
        let sql = sql!("save_pages_count");
        connection.change(sql, &[&job, &-bytes, &-pages]).await?;
    }
    Ok(count(deleted, 0)?)
}

/// Deletes the pages of deleted jobs, one transaction per job.
pub(super) async fn clear(store: &PostgresStore, limit: u32) -> Result<u64, StoreError> {
    let limit = u64::from(limit);
    let (mut cleared, mut after) = (0, 0);
    while cleared < limit {
        let jobs = deleted_jobs(store, after, limit - cleared).await?;
        let Some(last) = jobs.last() else { break };
        after = *last;
        for job in jobs {
            let limit_left = limit - cleared;
            if limit_left == 0 {
                break;
            }
            cleared += store
                .api
                .run((job, limit_left.cast_signed()), |connection, args| async move {
                    connection.transaction(clear_one(&connection, args.0, args.1)).await
                })
                .await?;
        }
    }
    Ok(cleared)
}

/// Returns the next deleted jobs that still have pages.
async fn deleted_jobs(
    store: &PostgresStore,
    after: i64,
    limit: u64,
) -> Result<Vec<i64>, StoreError> {
    store
        .api
        .run((after, limit.cast_signed()), |connection, args| async move {
            let sql = sql!("clear_pages_jobs");
            let rows = connection.rows(sql, &[&args.0, &args.1]).await?;
            Ok(rows.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?)
        })
        .await
}

/// Deletes pages of one deleted job, unless another transaction is deleting them.
async fn clear_one(connection: &Connection, job: i64, limit_left: i64) -> Tried<u64> {
    let sql = sql!("clear_pages_lock");
    if connection.maybe_row(sql, &[&job]).await?.is_none() {
        return Ok(0);
    }
    let sql = sql!("clear_pages");
    let pages =
        subtract_usage(connection, job, &connection.row(sql, &[&job, &limit_left]).await?).await?;
    if pages.cast_signed() < limit_left {
        let sql = sql!("clear_pages_usage");
        connection.change(sql, &[&job]).await?;
    }
    Ok(pages)
}
