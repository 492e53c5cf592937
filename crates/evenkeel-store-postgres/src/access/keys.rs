//! Keys of programs.

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{ApiKey, KeyHash, NewApiKey, Now, Page, PageRequest, Scope, StoreError};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use super::role;
use crate::PostgresStore;
use crate::columns::{count, get, maybe_time, micros, time};
use crate::error::Tried;

pub(super) async fn create_key(
    store: &PostgresStore,
    scope: &Scope,
    key: NewApiKey,
    now: Now,
) -> Result<bool, StoreError> {
    store
        .api
        .run((scope.tenant.0, key, micros(now.literal())), |connection, args| async move {
            let (tenant, key, now) = &*args;
            let (role, expires_at) = (key.role as i16, micros(key.expires_at));
            let made = connection
                .change(
                    sql!("create_key"),
                    &[
                        &key.id,
                        tenant,
                        &key.name,
                        &role,
                        &&key.hash[..],
                        &key.created_by,
                        now,
                        &expires_at,
                    ],
                )
                .await?;
            Ok(made == 1)
        })
        .await
}

pub(super) async fn find_key(
    store: &PostgresStore,
    hash: &KeyHash,
) -> Result<Option<ApiKey>, StoreError> {
    store
        .api
        .run(*hash, |connection, hash| async move {
            let sql = sql!("find_key");
            let row = connection.maybe_row(sql, &[&&hash[..]]).await?;
            row.as_ref().map(read_key).transpose()
        })
        .await
}

pub(super) async fn use_keys(
    store: &PostgresStore,
    ids: &[Uuid],
    at: Timestamp,
) -> Result<(), StoreError> {
    // In one order, so that no two nodes wait for each other.
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    store
        .api
        .run((ids, at.as_micros()), |connection, args| async move {
            let sql = sql!("use_keys");
            connection.change(sql, &[&args.0, &args.1]).await?;
            Ok(())
        })
        .await
}

pub(super) async fn revoke_key(
    store: &PostgresStore,
    scope: &Scope,
    id: Uuid,
    now: Now,
) -> Result<bool, StoreError> {
    store
        .api
        .run((scope.tenant.0, id, micros(now.literal())), |connection, args| async move {
            let sql = sql!("revoke_key");
            Ok(connection.change(sql, &[&args.0, &args.1, &args.2]).await? == 1)
        })
        .await
}

pub(super) async fn list_keys(
    store: &PostgresStore,
    scope: &Scope,
    page: PageRequest<Uuid>,
) -> Result<Page<ApiKey, Uuid>, StoreError> {
    store
        .api
        .run((scope.tenant.0, page), |connection, args| async move {
            let (tenant, page) = &*args;
            let after = page.after.unwrap_or(Uuid::nil());
            // One more than asked for tells whether there is another page.
            let (limit, offset) = (i64::from(page.limit) + 1, i64::from(page.offset));
            let (rows, counted) = try_join(
                connection.rows(sql!("list_keys"), &[tenant, &after, &limit, &offset]),
                connection.row(sql!("list_keys_count"), &[tenant]),
            )
            .await?;
            let mut items = rows.iter().map(read_key).collect::<Tried<Vec<ApiKey>>>()?;
            let is_last = items.len() <= page.limit as usize;
            items.truncate(page.limit as usize);
            let next = items.last().map(|key| key.id).filter(|_| !is_last);
            Ok(Page { items, total: count(&counted, 0)?, total_is_estimate: false, next })
        })
        .await
}

fn read_key(row: &Row) -> Tried<ApiKey> {
    Ok(ApiKey {
        id: get(row, 0)?,
        tenant: TenantNo(get(row, 1)?),
        tenant_name: get(row, 2)?,
        name: get(row, 3)?,
        role: role(get(row, 4)?)?,
        created_by: get(row, 5)?,
        created_at: time(row, 6)?,
        expires_at: maybe_time(row, 7)?,
        revoked_at: maybe_time(row, 8)?,
        last_used_at: maybe_time(row, 9)?,
    })
}
