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
use crate::rows::{column, count, get, micros, page_limit, page_of, time};

#[async_trait]
impl SecretStore for PostgresStore {
    async fn put_secret(
        &self,
        scope: &Scope,
        secret: NewSecret,
        now: Now,
    ) -> Result<SecretInfo, StoreError> {
        let NewSecret { name, sealed: Sealed { key_id, nonce, ciphertext }, by } = secret;
        let now = micros(now.literal());
        let params = params![scope.tenant.0, name, key_id, nonce, ciphertext, now, by];
        self.api.row(sql!("put_secret"), params, read_info).await
    }

    async fn delete_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        let params = params![scope.tenant.0, name.to_owned()];
        Ok(self.api.change(sql!("delete_secret"), params).await? == 1)
    }

    async fn list_secrets(
        &self,
        scope: &Scope,
        page: PageRequest<String>,
    ) -> Result<Page<SecretInfo, String>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, page, |connection, page| {
            let after = page.after.as_deref().unwrap_or_default();
            let (limit, offset) = (page_limit(page), i64::from(page.offset));
            let (rows, counted) = try_join(
                connection.rows(sql!("list_secrets"), &[&tenant, &after, &limit, &offset]),
                connection.row(sql!("list_secrets_count"), &[&tenant]),
            )
            .await?;
            let total = (count(&counted, 0)?, u64::MAX);
            page_of(page, &rows, read_info, |secret| secret.name.clone(), total)
        })
    }

    async fn get_secret(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<SecretInfo>, StoreError> {
        let params = params![scope.tenant.0, name.to_owned()];
        self.api.maybe_row(sql!("get_secret"), params, read_info).await
    }

    async fn get_secrets(
        &self,
        scope: &Scope,
        names: &[String],
    ) -> Result<Vec<SealedSecret>, StoreError> {
        // An attempt cannot start until its secrets are read, so they are read on the connections
        // of the hot path.
        let params = params![scope.tenant.0, names.to_vec()];
        self.hot.rows(sql!("get_secrets"), params, read_sealed).await
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
        let (after, name) =
            after.map_or((i32::MIN, String::new()), |(tenant, name)| (tenant.0, name));
        let params = params![tenant, key_id.to_owned(), after, name, i64::from(limit)];
        self.api.rows(sql!("stale_secrets"), params, read_sealed).await
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
        let params = params![
            reach.tenant(scope).map(|tenant| tenant.0),
            column(&secrets, |secret| secret.tenant.0),
            column(&secrets, |secret| secret.name.clone()),
            column(&secrets, |secret| secret.if_nonce.clone()),
            column(&secrets, |secret| secret.sealed.key_id.clone()),
            column(&secrets, |secret| secret.sealed.nonce.clone()),
            column(&secrets, |secret| secret.sealed.ciphertext.clone())
        ];
        self.api.change(sql!("reseal_secrets"), params).await
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
