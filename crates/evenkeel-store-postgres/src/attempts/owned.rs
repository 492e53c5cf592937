//! Reads the attempts that a node runs, and which of these attempts are cancelled.

use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, TenantNo};
use evenkeel_store::{Cancellation, OwnedAttempt, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{KeyColumns, get, key, maybe_priority, time};

pub(super) async fn find_owned(
    store: &PostgresStore,
    node: NodeNo,
    keys: &[AttemptKey],
) -> Result<Vec<OwnedAttempt>, StoreError> {
    let args = (node.0, keys.iter().copied().collect::<KeyColumns>());
    store
        .hot
        .run(args, |connection, args| async move {
            let (node, KeyColumns { job_no, scheduled_at, sequence, attempt }) = &*args;
            let sql = sql!("find_owned");
            let rows =
                connection.rows(sql, &[node, job_no, scheduled_at, sequence, attempt]).await?;
            rows.iter().map(read_owned).collect()
        })
        .await
}

pub(super) async fn owned(
    store: &PostgresStore,
    node: NodeNo,
    limit: u32,
) -> Result<Vec<OwnedAttempt>, StoreError> {
    store
        .hot
        .run((node.0, i64::from(limit)), |connection, args| async move {
            let (node, limit) = &*args;
            let sql = sql!("owned");
            let rows = connection.rows(sql, &[node, limit]).await?;
            rows.iter().map(read_owned).collect()
        })
        .await
}

pub(super) async fn cancellations(
    store: &PostgresStore,
    node: NodeNo,
) -> Result<Vec<Cancellation>, StoreError> {
    store
        .hot
        .run(node.0, |connection, node| async move {
            let sql = sql!("cancellations");
            let rows = connection.rows(sql, &[&*node]).await?;
            let read =
                |row| Ok(Cancellation { key: key(row)?, superseded: get(row, "superseded")? });
            rows.iter().map(read).collect()
        })
        .await
}

/// Reads the columns of the SQL fragment `owned_columns`.
pub(crate) fn read_owned(row: &Row) -> Tried<OwnedAttempt> {
    Ok(OwnedAttempt {
        key: key(row)?,
        fence: Fence(get::<i32>(row, "fence")?.cast_unsigned()),
        tenant: TenantNo(get(row, "tenant_no")?),
        started_at: time(row, "started_at")?,
        crashes: get::<i16>(row, "crashes")?.max(0).cast_unsigned(),
        definition: get(row, "definition")?,
        priority: maybe_priority(row, "priority")?,
    })
}
