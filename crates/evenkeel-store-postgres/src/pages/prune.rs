//! Forgets pages.

use evenkeel_core::{JobNo, PageId};
use evenkeel_store::StoreError;
use tokio_postgres::Row;

use super::ids;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get};

pub(super) async fn forget(
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
                give_room_back(&connection, *job, &connection.row(sql, &[pages, job]).await?).await
            };
            connection.transaction(body).await
        })
        .await
}

/// Takes note that pages are gone. Says how many.
async fn give_room_back(connection: &Connection, job: i64, gone: &Row) -> Tried<u64> {
    let (pages, bytes): (i64, i64) = (get(gone, 0)?, get(gone, 1)?);
    if pages > 0 {
        let sql = sql!("save_pages_count");
        connection.change(sql, &[&job, &-bytes, &-pages]).await?;
    }
    Ok(count(gone, 0)?)
}

/// Job by job, each in a transaction of its own: what is done stays done.
pub(super) async fn clear(store: &PostgresStore, limit: u32) -> Result<u64, StoreError> {
    let limit = u64::from(limit);
    let (mut cleared, mut after) = (0, 0);
    while cleared < limit {
        let jobs = deleted_jobs(store, after, limit - cleared).await?;
        let Some(last) = jobs.last() else { break };
        after = *last;
        for job in jobs {
            let room = limit - cleared;
            if room == 0 {
                break;
            }
            cleared += store
                .api
                .run((job, room.cast_signed()), |connection, args| async move {
                    connection.transaction(clear_one(&connection, args.0, args.1)).await
                })
                .await?;
        }
    }
    Ok(cleared)
}

/// The next deleted jobs that have a shelf. All shelves are walked along once, and no more.
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

/// Clears pages of one deleted job, unless somebody else does.
async fn clear_one(connection: &Connection, job: i64, room: i64) -> Tried<u64> {
    let sql = sql!("clear_pages_lock");
    if connection.maybe_row(sql, &[&job]).await?.is_none() {
        return Ok(0);
    }
    let sql = sql!("clear_pages");
    let pages =
        give_room_back(connection, job, &connection.row(sql, &[&job, &room]).await?).await?;
    if pages.cast_signed() < room {
        let sql = sql!("clear_pages_usage");
        connection.change(sql, &[&job]).await?;
    }
    Ok(pages)
}
