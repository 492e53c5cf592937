//! API keys and the audit log.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    AUDIT_SCAN_MAX, AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey,
    Now, Page, PageRequest, Role, Scope, StoreError, sql_time,
};
use rusqlite::{Connection, Row};
use uuid::Uuid;

use crate::SqliteStore;
use crate::connection::Urgency::{Batch, Command};
use crate::connection::{Params, RunPrepared, RunSql, resolve};
use crate::error::Answer;
use crate::rows::page_of;

/// The tenant number that stands for an unidentified client in audit entries.
const UNIDENTIFIED: i32 = 0;
/// A tenant number that no tenant has.
const NONE: i32 = -1;
/// How many audit entries one statement reads.
const CHUNK: u32 = 500;

#[async_trait]
impl AccessStore for SqliteStore {
    async fn create_key(
        &self,
        scope: &Scope,
        key: NewApiKey,
        now: Now,
    ) -> Result<bool, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |db| {
                let NewApiKey { id, name, role, hash, created_by, expires_at } = &key;
                let row: Params<'_> =
                    &[id, &tenant, name, role, hash, created_by, &resolve(now), expires_at];
                Ok(db.change(sql!("create_key"), row)? == 1)
            })
            .await
    }

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        let hash = *hash;
        self.engine_readers.read(move |db| db.maybe_row(sql!("find_key"), &[&hash], key_from)).await
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.writer
            .write(Batch, ids.len(), move |db| {
                ids.iter().try_for_each(|id| db.run(sql!("use_keys"), &[id, &at]))
            })
            .await
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |db| {
                Ok(db.change(sql!("revoke_key"), &[&tenant, &id, &resolve(now)])? == 1)
            })
            .await
    }

    async fn list_keys(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<ApiKey, Uuid>, StoreError> {
        let tenant = scope.tenant;
        self.readers.read(move |db| list_keys(db, tenant, page)).await
    }

    async fn record_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.writer.write(Command, entries.len(), move |db| record(db, &entries)).await
    }

    async fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Result<Page<(AuditCursor, AuditEntry), AuditCursor>, StoreError> {
        let (tenant, filter) = (scope.tenant, filter.clone());
        self.readers.read(move |db| list_audit(db, tenant, &filter, page)).await
    }

    async fn prune_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.writer
            .write(Batch, limit as usize, move |db| {
                db.change(sql!("prune_audit"), &[&before, &limit])
            })
            .await
    }
}

fn role_from(code: usize) -> Result<Role, StoreError> {
    let role = Role::ALL.get(code).copied();
    role.ok_or_else(|| StoreError::corrupt("access", "role", format!("{code} is unknown")))
}

fn key_from(row: &Row<'_>) -> Answer<ApiKey> {
    let id: [u8; 16] = row.get("id")?;
    Ok(ApiKey {
        id: Uuid::from_bytes(id),
        tenant: TenantNo(row.get("tenant_no")?),
        tenant_name: row.get("tenant_name")?,
        name: row.get("name")?,
        role: role_from(row.get("role")?)?,
        created_by: row.get("created_by")?,
        created_at: Timestamp::from_micros(row.get("created_at")?),
        expires_at: sql_time(row.get("expires_at")?),
        revoked_at: sql_time(row.get("revoked_at")?),
        last_used_at: sql_time(row.get("last_used_at")?),
    })
}

fn list_keys(
    db: &Connection,
    tenant: TenantNo,
    page: PageRequest<Uuid>,
) -> Answer<Page<ApiKey, Uuid>> {
    let after = page.after.unwrap_or(Uuid::nil());
    let limit = i64::from(page.limit) + 1;
    let items = db.rows(sql!("list_keys"), &[&tenant, &after, &limit, &page.offset], key_from)?;
    let total = db.value(sql!("list_keys_count"), &[&tenant])?;
    Ok(page_of(items, page.limit, (total, false), |key| key.id))
}

fn record(db: &Connection, entries: &[AuditEntry]) -> Answer<()> {
    let mut write = db.prepare_cached(sql!("record_audit"))?;
    for entry in entries {
        let tenant = entry.tenant.map_or(UNIDENTIFIED, |tenant| tenant.0);
        write.run(&[
            &entry.at, &tenant, &entry.subject, &entry.role, &entry.action, &entry.target,
            &entry.status, &entry.denied, &entry.detail, &entry.remote, &entry.request_id,
        ])?;
    }
    Ok(())
}

fn list_audit(
    db: &Connection,
    tenant: TenantNo,
    filter: &AuditFilter,
    page: PageRequest<AuditCursor>,
) -> Answer<Page<(AuditCursor, AuditEntry), AuditCursor>> {
    let other = if filter.with_unknown { UNIDENTIFIED } else { NONE };
    let from = filter.from.unwrap_or(Timestamp::MIN);
    let mut statement = db.prepare_cached(sql!("list_audit"))?;
    let mut place = filter.start(page.after);
    let (mut items, mut to_skip, mut looked_at) = (Vec::new(), page.offset, 0);
    let mut is_over = false;
    while !is_over && items.len() <= page.limit as usize && looked_at < AUDIT_SCAN_MAX {
        let mut rows = statement.select(&[&tenant, &other, &place.at, &place.no, &from, &CHUNK])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let (at, entry) = entry_from(row)?;
            (place, seen) = (at, seen + 1);
            if !filter.passes(&entry) {
                continue;
            }
            match to_skip {
                0 => items.push((at, entry)),
                _ => to_skip -= 1,
            }
            if items.len() > page.limit as usize {
                break;
            }
        }
        looked_at += seen;
        is_over = seen < CHUNK && items.len() <= page.limit as usize;
    }
    let next = if items.len() > page.limit as usize {
        items.truncate(page.limit as usize);
        items.last().map(|(place, _)| *place)
    } else {
        Some(place).filter(|_| !is_over)
    };
    let (total, total_is_estimate) = count_audit(db, tenant, other, filter)?;
    Ok(Page { items, total, total_is_estimate, next })
}

fn count_audit(
    db: &Connection,
    tenant: TenantNo,
    other: i32,
    filter: &AuditFilter,
) -> Answer<(u64, bool)> {
    let AuditFilter { from, subject, target, denied, .. } = filter;
    let (until, from) = (filter.start(None).at, from.unwrap_or(Timestamp::MIN));
    let most = i64::from(AUDIT_SCAN_MAX);
    let which: Params<'_> = &[&tenant, &other, &until, &from, subject, target, denied, &(most + 1)];
    let (matching, read): (i64, i64) =
        db.row(sql!("list_audit_count"), which, |row| Ok(row.try_into()?))?;
    Ok((matching.min(most).unsigned_abs(), read > most))
}

fn entry_from(row: &Row<'_>) -> Answer<(AuditCursor, AuditEntry)> {
    let place = AuditCursor { at: Timestamp::from_micros(row.get("at")?), no: row.get("no")? };
    let tenant: i32 = row.get("tenant_no")?;
    let role: Option<usize> = row.get("role")?;
    let entry = AuditEntry {
        at: place.at,
        tenant: Some(TenantNo(tenant)).filter(|_| tenant != UNIDENTIFIED),
        subject: row.get("subject")?,
        role: role.map(role_from).transpose()?,
        action: row.get("action")?,
        target: row.get("target")?,
        status: row.get("status")?,
        denied: row.get("denied")?,
        detail: row.get("detail")?,
        remote: row.get("remote")?,
        request_id: row.get("request_id")?,
    };
    Ok((place, entry))
}
