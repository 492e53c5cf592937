//! Named secrets.

use async_trait::async_trait;
use evenkeel_core::TenantNo;
use evenkeel_store::{
    NewSecret, Now, Page, PageRequest, Reseal, Scope, Sealed, SealedSecret, SecretInfo,
    SecretReach, SecretStore, StoreError,
};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::error::Tried;
use crate::rows::{count, get, micros, time};

#[async_trait]
impl SecretStore for PostgresStore {
    async fn put_secret(
        &self,
        scope: &Scope,
        secret: NewSecret,
        now: Now,
    ) -> Result<SecretInfo, StoreError> {
        self.api
            .run((scope.tenant.0, secret, micros(now.literal())), |connection, args| async move {
                let (tenant, NewSecret { name, sealed, by }, now) = &*args;
                let Sealed { key_id, nonce, ciphertext } = sealed;
                let sql = sql!("put_secret");
                let values: crate::connection::Params<'_> =
                    &[tenant, name, key_id, nonce, ciphertext, now, by];
                read_info(&connection.row(sql, values).await?)
            })
            .await
    }

    async fn delete_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        self.api
            .run((scope.tenant.0, name.to_owned()), |connection, args| async move {
                let sql = sql!("delete_secret");
                Ok(connection.change(sql, &[&args.0, &args.1]).await? == 1)
            })
            .await
    }

    async fn list_secrets(
        &self,
        scope: &Scope,
        page: PageRequest<String>,
    ) -> Result<Page<SecretInfo, String>, StoreError> {
        self.api
            .run((scope.tenant.0, page), |connection, args| async move {
                let (tenant, page) = &*args;
                let after = page.after.as_deref().unwrap_or_default();
                // One extra row shows whether there is another page.
                let (limit, offset) = (i64::from(page.limit) + 1, i64::from(page.offset));
                let (rows, counted) = try_join(
                    connection.rows(sql!("list_secrets"), &[tenant, &after, &limit, &offset]),
                    connection.row(sql!("list_secrets_count"), &[tenant]),
                )
                .await?;
                let mut items = rows.iter().map(read_info).collect::<Tried<Vec<SecretInfo>>>()?;
                let is_last = items.len() <= page.limit as usize;
                items.truncate(page.limit as usize);
                let next = items.last().map(|secret| secret.name.clone()).filter(|_| !is_last);
                Ok(Page { items, total: count(&counted, 0)?, total_is_estimate: false, next })
            })
            .await
    }

    async fn get_secret(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<SecretInfo>, StoreError> {
        self.api
            .run((scope.tenant.0, name.to_owned()), |connection, args| async move {
                let sql = sql!("get_secret");
                let row = connection.maybe_row(sql, &[&args.0, &args.1]).await?;
                row.as_ref().map(read_info).transpose()
            })
            .await
    }

    async fn get_secrets(
        &self,
        scope: &Scope,
        names: &[String],
    ) -> Result<Vec<SealedSecret>, StoreError> {
        // An attempt cannot start until its secrets are read, so they are read on the connections
        // of the hot path.
        self.hot
            .run((scope.tenant.0, names.to_vec()), |connection, args| async move {
                let sql = sql!("get_secrets");
                let rows = connection.rows(sql, &[&args.0, &args.1]).await?;
                rows.iter().map(read_sealed).collect()
            })
            .await
    }

    async fn stale_secrets(
        &self,
        scope: &Scope,
        reach: SecretReach,
        key_id: &str,
        after: Option<(TenantNo, String)>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let tenant = reach.tenant(scope).map(|tenant| tenant.0);
        let after = after.map_or((i32::MIN, String::new()), |(tenant, name)| (tenant.0, name));
        self.api
            .run(
                (tenant, key_id.to_owned(), after, i64::from(limit)),
                |connection, args| async move {
                    let (tenant, key_id, after, limit) = &*args;
                    let sql = sql!("stale_secrets");
                    let values: crate::connection::Params<'_> =
                        &[tenant, key_id, &after.0, &after.1, limit];
                    let rows = connection.rows(sql, values).await?;
                    rows.iter().map(read_sealed).collect()
                },
            )
            .await
    }

    async fn reseal_secrets(
        &self,
        scope: &Scope,
        reach: SecretReach,
        mut secrets: Vec<Reseal>,
    ) -> Result<u64, StoreError> {
        // All nodes write secrets in the order of tenant and name, so that two nodes cannot
        // deadlock.
        secrets.sort_by(|a, b| (a.tenant, &a.name).cmp(&(b.tenant, &b.name)));
        let tenant = reach.tenant(scope).map(|tenant| tenant.0);
        self.api
            .run((tenant, secrets), |connection, args| async move {
                let (tenant, secrets) = &*args;
                let tenants: Vec<i32> = secrets.iter().map(|secret| secret.tenant.0).collect();
                let names: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
                let before: Vec<&[u8]> =
                    secrets.iter().map(|secret| &secret.if_nonce[..]).collect();
                let sealed = || secrets.iter().map(|secret| &secret.sealed);
                let keys: Vec<&str> = sealed().map(|sealed| sealed.key_id.as_str()).collect();
                let nonces: Vec<&[u8]> = sealed().map(|sealed| &sealed.nonce[..]).collect();
                let texts: Vec<&[u8]> = sealed().map(|sealed| &sealed.ciphertext[..]).collect();
                let sql = sql!("reseal_secrets");
                let values: crate::connection::Params<'_> =
                    &[tenant, &tenants, &names, &before, &keys, &nonces, &texts];
                connection.change(sql, values).await
            })
            .await
    }
}

fn read_info(row: &Row) -> Tried<SecretInfo> {
    Ok(SecretInfo {
        name: get(row, "name")?,
        version: get(row, "version")?,
        key_id: get(row, "key_id")?,
        created_at: time(row, "created_at")?,
        created_by: get(row, "created_by")?,
        updated_at: time(row, "updated_at")?,
        updated_by: get(row, "updated_by")?,
    })
}

fn read_sealed(row: &Row) -> Tried<SealedSecret> {
    let sealed = Sealed {
        key_id: get(row, "key_id")?,
        nonce: get(row, "nonce")?,
        ciphertext: get(row, "ciphertext")?,
    };
    Ok(SealedSecret { tenant: TenantNo(get(row, "tenant_no")?), name: get(row, "name")?, sealed })
}
