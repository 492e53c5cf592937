//! Forgets pages.

use evenkeel_core::{JobNo, PageId};
use evenkeel_store::StoreError;
use tokio_postgres::Row;

use super::ids;
use crate::PostgresStore;
use crate::columns::{count, get};
use crate::error::Tried;
use crate::pool::Connection;

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
                let lock = include_str!("../../queries/forget_pages_lock.sql");
                connection.maybe_row(lock, &[job]).await?;
                let sql = include_str!("../../queries/forget_pages.sql");
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
        let sql = include_str!("../../queries/keep_pages_count.sql");
        connection.change(sql, &[&job, &-bytes, &-pages]).await?;
    }
    Ok(count(gone, 0)?)
}

/// Job by job, each in a transaction of its own: what is done stays done.
pub(super) async fn clear(store: &PostgresStore, limit: u32) -> Result<u64, StoreError> {
    let mut cleared = 0;
    while cleared < u64::from(limit) {
        let room = i64::from(limit) - cleared.cast_signed();
        let one = store
            .api
            .run(room, |connection, room| async move {
                connection.transaction(clear_one(&connection, *room)).await
            })
            .await?;
        match one {
            Some(pages) => cleared += pages,
            None => break,
        }
    }
    Ok(cleared)
}

/// Clears pages of one deleted job. `None` if there is no such job.
async fn clear_one(connection: &Connection, room: i64) -> Tried<Option<u64>> {
    let sql = include_str!("../../queries/clear_pages_job.sql");
    let Some(row) = connection.maybe_row(sql, &[]).await? else { return Ok(None) };
    let job: i64 = get(&row, 0)?;
    let sql = include_str!("../../queries/clear_pages.sql");
    let pages =
        give_room_back(connection, job, &connection.row(sql, &[&job, &room]).await?).await?;
    if pages.cast_signed() < room {
        let sql = include_str!("../../queries/clear_pages_shelf.sql");
        connection.change(sql, &[&job]).await?;
    }
    Ok(Some(pages))
}
