//! Named secrets.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    NewSecret, Now, Page, PageRequest, Reseal, Scope, Sealed, SealedSecret, SecretInfo,
    SecretReach, SecretStore, StoreError,
};
use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::{Batch, Command};
use crate::error::Answer;
use crate::rows::{collect, count, page_of};

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
            .write(Command, 1, move |session| {
                let sql = sql!("put_secret");
                let Sealed { key_id, nonce, ciphertext } = &secret.sealed;
                let at = resolve(now).as_micros();
                let values =
                    params![tenant.0, secret.name, key_id, nonce, ciphertext, at, secret.by];
                let mut put = session.connection().prepare_cached(sql)?;
                Ok(put.query_row(values, info_from)?)
            })
            .await
    }

    async fn delete_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (scope.tenant, name.to_owned());
        self.writer
            .write(Command, 1, move |session| {
                let sql = sql!("delete_secret");
                let mut delete = session.connection().prepare_cached(sql)?;
                Ok(delete.execute(params![tenant.0, name])? == 1)
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
            .read(move |db| {
                let mut get = db.prepare_cached(sql!("get_secret"))?;
                let mut rows = get.query(params![tenant.0, name])?;
                Ok(rows.next()?.map(info_from).transpose()?)
            })
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
                    let mut rows = get.query(params![tenant.0, name])?;
                    if let Some(row) = rows.next()? {
                        found.push(sealed_from(row)?);
                    }
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
                let mut walk = db.prepare_cached(sql!("stale_secrets"))?;
                collect(
                    walk.query(params![tenant, key_id, after_tenant, after_name, limit])?,
                    |row| Ok(sealed_from(row)?),
                )
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
            .write(Batch, secrets.len(), move |session| {
                let sql = sql!("reseal_secrets");
                let mut reseal = session.connection().prepare_cached(sql)?;
                let mut count = 0;
                let in_reach =
                    |secret: &&Reseal| tenant.is_none_or(|tenant| tenant == secret.tenant);
                for secret in secrets.iter().filter(in_reach) {
                    let Sealed { key_id, nonce, ciphertext } = &secret.sealed;
                    let values = params![
                        secret.tenant.0, secret.name, secret.if_nonce, key_id, nonce, ciphertext
                    ];
                    count += reseal.execute(values)? as u64;
                }
                Ok(count)
            })
            .await
    }
}

fn info_from(row: &Row<'_>) -> rusqlite::Result<SecretInfo> {
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

fn sealed_from(row: &Row<'_>) -> rusqlite::Result<SealedSecret> {
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
    let limit = i64::from(page.limit) + 1;
    let mut list = db.prepare_cached(sql!("list_secrets"))?;
    let items = collect(list.query(params![tenant.0, after, limit, page.offset])?, |row| {
        Ok(info_from(row)?)
    })?;
    let total = count(db, sql!("list_secrets_count"), tenant)?;
    Ok(page_of(items, page.limit, total, |secret| secret.name.clone()))
}
