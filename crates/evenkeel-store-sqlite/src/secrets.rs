//! Named secrets.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    NewSecret, Now, Page, PageRequest, Reseal, Scope, Sealed, SealedSecret, SecretInfo,
    SecretReach, SecretStore, StoreError,
};
use rusqlite::{Connection, Row};

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{Params, RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::rows::page_of;

#[async_trait]
impl SecretStore for SqliteStore {
    async fn put_secret(
        &self,
        scope: &Scope,
        secret: NewSecret,
        now: Now,
    ) -> Result<SecretInfo, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |db| {
                let NewSecret { name, sealed: Sealed { key_id, nonce, ciphertext }, by } = &secret;
                let row: Params<'_> =
                    &[&tenant, name, key_id, nonce, ciphertext, &resolve(now), by];
                db.row(sql!("put_secret"), row, info_from)
            })
            .await
    }

    async fn delete_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (scope.tenant, name.to_owned());
        self.writer
            .write(Command, 1, move |db| {
                Ok(db.change(sql!("delete_secret"), &[&tenant, &name])? == 1)
            })
            .await
    }

    async fn list_secrets(
        &self,
        scope: &Scope,
        page: PageRequest<String>,
    ) -> Result<Page<SecretInfo, String>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list_secrets(db, tenant, &page)).await
    }

    async fn get_secret(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<SecretInfo>, StoreError> {
        let (tenant, name) = (scope.tenant, name.to_owned());
        self.readers
            .read(move |db| db.maybe_row(sql!("get_secret"), &[&tenant, &name], info_from))
            .await
    }

    async fn get_secrets(
        &self,
        scope: &Scope,
        names: &[String],
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let (tenant, names) = (scope.tenant, names.to_vec());
        // An attempt cannot start until its secrets are read, so they are read on the connections
        // of the engine.
        self.engine_readers
            .read(move |db| {
                let mut get = db.prepare_cached(sql!("get_secrets"))?;
                let mut found = Vec::with_capacity(names.len());
                for name in &names {
                    found.extend(get.maybe_row(&[&tenant, name], sealed_from)?);
                }
                Ok(found)
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
        let (after_tenant, after_name) = after.map_or((i32::MIN, String::new()), |(t, n)| (t.0, n));
        let key_id = key_id.to_owned();
        self.readers
            .read(move |db| {
                let which: Params<'_> = &[&tenant, &key_id, &after_tenant, &after_name, &limit];
                db.rows(sql!("stale_secrets"), which, sealed_from)
            })
            .await
    }

    async fn reseal_secrets(
        &self,
        scope: &Scope,
        reach: SecretReach,
        secrets: Vec<Reseal>,
    ) -> Result<u64, StoreError> {
        let tenant = reach.tenant(scope);
        self.writer
            .write(Batch, secrets.len(), move |db| {
                let mut reseal = db.prepare_cached(sql!("reseal_secrets"))?;
                let mut count = 0;
                let in_reach =
                    |secret: &&Reseal| tenant.is_none_or(|tenant| tenant == secret.tenant);
                for secret in secrets.iter().filter(in_reach) {
                    let Reseal { tenant, name, if_nonce, sealed } = secret;
                    let Sealed { key_id, nonce, ciphertext } = sealed;
                    count += reseal.change(&[tenant, name, if_nonce, key_id, nonce, ciphertext])?;
                }
                Ok(count)
            })
            .await
    }
}

fn info_from(row: &Row<'_>) -> Answer<SecretInfo> {
    Ok(SecretInfo {
        name: row.get("name")?,
        version: row.get("version")?,
        key_id: row.get("key_id")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        created_by: row.get("created_by")?,
        updated_at: Timestamp::from_micros(row.get("updated_at")?),
        updated_by: row.get("updated_by")?,
    })
}

fn sealed_from(row: &Row<'_>) -> Answer<SealedSecret> {
    let sealed = Sealed {
        key_id: row.get("key_id")?,
        nonce: row.get("nonce")?,
        ciphertext: row.get("ciphertext")?,
    };
    Ok(SealedSecret { tenant: TenantNo(row.get("tenant_no")?), name: row.get("name")?, sealed })
}

fn list_secrets(
    db: &Connection,
    tenant: TenantNo,
    page: &PageRequest<String>,
) -> Answer<Page<SecretInfo, String>> {
    let after = page.after.as_deref().unwrap_or_default();
    let which: Params<'_> = &[&tenant, &after, &(i64::from(page.limit) + 1), &page.offset];
    let items = db.rows(sql!("list_secrets"), which, info_from)?;
    let total = db.value(sql!("list_secrets_count"), &[&tenant])?;
    Ok(page_of(items, page.limit, (total, false), |secret| secret.name.clone()))
}
