//! API keys and the audit log.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    AUDIT_SCAN_MAX, AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey,
    Now, Page, PageRequest, Role, Scope, StoreError, sql_time,
};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use crate::SqliteStore;
use crate::connection::clock::resolve;
use crate::connection::urgency::Urgency::{Batch, Command};
use crate::error::Answer;
use crate::rows::{collect, count, micros, page_of};

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
            .write(Command, 1, move |session| {
                let made =
                    session.connection().prepare_cached(sql!("create_key"))?.execute(params![
                        key.id.as_bytes(),
                        tenant.0,
                        key.name,
                        key.role as u8,
                        key.hash,
                        key.created_by,
                        resolve(now).as_micros(),
                        micros(key.expires_at),
                    ])?;
                Ok(made == 1)
            })
            .await
    }

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        let hash = *hash;
        self.engine_readers
            .read(move |db| {
                let mut statement = db.prepare_cached(sql!("find_key"))?;
                let mut rows = statement.query([hash])?;
                rows.next()?.map(key_from).transpose()
            })
            .await
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        let ids = ids.to_vec();
        self.writer
            .write(Batch, ids.len(), move |session| {
                let mut note = session.connection().prepare_cached(sql!("use_keys"))?;
                for id in &ids {
                    note.execute(params![id.as_bytes(), at.as_micros()])?;
                }
                Ok(())
            })
            .await
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        let tenant = scope.tenant;
        self.writer
            .write(Command, 1, move |session| {
                let sql = sql!("revoke_key");
                let which = params![tenant.0, id.as_bytes(), resolve(now).as_micros()];
                Ok(session.connection().prepare_cached(sql)?.execute(which)? == 1)
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
        self.writer
            .write(Command, entries.len(), move |session| record(session.connection(), &entries))
            .await
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
            .write(Batch, limit as usize, move |session| {
                let sql = sql!("prune_audit");
                let mut forget = session.connection().prepare_cached(sql)?;
                Ok(forget.execute(params![before.as_micros(), limit])? as u64)
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
    let mut statement = db.prepare_cached(sql!("list_keys"))?;
    let items = collect(
        statement.query(params![tenant.0, after.as_bytes(), limit, page.offset])?,
        key_from,
    )?;
    let total = count(db, sql!("list_keys_count"), tenant)?;
    Ok(page_of(items, page.limit, total, |key| key.id))
}

fn record(db: &Connection, entries: &[AuditEntry]) -> Answer<()> {
    let mut write = db.prepare_cached(sql!("record_audit"))?;
    for entry in entries {
        write.execute(params![
            entry.at.as_micros(),
            entry.tenant.map_or(UNIDENTIFIED, |tenant| tenant.0),
            entry.subject,
            entry.role.map(|role| role as u8),
            entry.action,
            entry.target,
            entry.status,
            entry.denied,
            entry.detail,
            entry.remote,
            entry.request_id,
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
    let from = filter.from.unwrap_or(Timestamp::MIN).as_micros();
    let mut statement = db.prepare_cached(sql!("list_audit"))?;
    let mut place = filter.start(page.after);
    let (mut items, mut to_skip, mut looked_at) = (Vec::new(), page.offset, 0);
    let mut is_over = false;
    while !is_over && items.len() <= page.limit as usize && looked_at < AUDIT_SCAN_MAX {
        let start = params![tenant.0, other, place.at.as_micros(), place.no, from, CHUNK];
        let mut rows = statement.query(start)?;
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
    let counted: (i64, i64) = db.prepare_cached(sql!("list_audit_count"))?.query_row(
        params![
            tenant.0,
            other,
            filter.start(None).at.as_micros(),
            filter.from.unwrap_or(Timestamp::MIN).as_micros(),
            filter.subject,
            filter.target,
            filter.denied,
            i64::from(AUDIT_SCAN_MAX) + 1,
        ],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let most = i64::from(AUDIT_SCAN_MAX);
    Ok((counted.0.min(most).unsigned_abs(), counted.1 > most))
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
