//! API keys and the audit log.

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    AUDIT_SCAN_MAX, AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey,
    Now, Page, PageRequest, Role, Scope, StoreError, from_code,
};
use futures::future::try_join;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresStore;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, count, get, maybe_time, micros, page_limit, page_of, time};

#[async_trait]
impl AccessStore for PostgresStore {
    async fn create_key(
        &self,
        scope: &Scope,
        key: NewApiKey,
        now: Now,
    ) -> Result<bool, StoreError> {
        let NewApiKey { id, name, role, hash, created_by, expires_at } = key;
        let (hash, now, expires_at) = (hash.to_vec(), micros(now.literal()), micros(expires_at));
        let params =
            params![id, scope.tenant.0, name, role as i16, hash, created_by, now, expires_at];
        Ok(self.api.change(sql!("create_key"), params).await? == 1)
    }

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.api.maybe_row(sql!("find_key"), params![hash.to_vec()], read_key).await
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        // All nodes update API keys in the order of their ids, so that two nodes cannot deadlock.
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        self.api.change(sql!("use_keys"), params![ids, at.as_micros()]).await?;
        Ok(())
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        let params = params![scope.tenant.0, id, micros(now.literal())];
        Ok(self.api.change(sql!("revoke_key"), params).await? == 1)
    }

    async fn list_keys(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<ApiKey, Uuid>, StoreError> {
        let tenant = scope.tenant.0;
        run!(self.api, |connection| {
            let after = page.after.unwrap_or(Uuid::nil());
            let (limit, offset) = (page_limit(&page), i64::from(page.offset));
            let (rows, counted) = try_join(
                connection.rows(sql!("list_keys"), &[&tenant, &after, &limit, &offset]),
                connection.row(sql!("list_keys_count"), &[&tenant]),
            )
            .await?;
            let total = (count(&counted, 0)?, u64::MAX);
            page_of(&page, &rows, read_key, |key| key.id, total)
        })
    }

    async fn record_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let tenant_of =
            |entry: &AuditEntry| entry.tenant.map_or(UNAUTHENTICATED, |tenant| tenant.0);
        let params = params![
            column(&entries, |entry| entry.at.as_micros()),
            column(&entries, tenant_of),
            column(&entries, |entry| entry.subject.clone()),
            column(&entries, |entry| entry.role.map(|role| role as i16)),
            column(&entries, |entry| entry.action.clone()),
            column(&entries, |entry| entry.target.clone()),
            column(&entries, |entry| entry.status.cast_signed()),
            column(&entries, |entry| entry.denied),
            column(&entries, |entry| entry.detail.clone()),
            column(&entries, |entry| entry.remote.clone()),
            column(&entries, |entry| entry.request_id.clone())
        ];
        self.api.change(sql!("record_audit"), params).await?;
        Ok(())
    }

    async fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Result<Page<(AuditCursor, AuditEntry), AuditCursor>, StoreError> {
        let other = if filter.with_unknown { UNAUTHENTICATED } else { NONE };
        let tenants = (scope.tenant.0, other);
        run!(self.api, filter.clone(), |connection, filter| {
            let walk = Walk { tenants, filter, page };
            let (items, next) = walk.go(connection).await?;
            let (total, total_is_estimate) = walk.count(connection).await?;
            Ok(Page { items, total, total_is_estimate, next })
        })
    }

    async fn prune_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let params = params![before.as_micros(), i64::from(limit)];
        self.api.change(sql!("prune_audit"), params).await
    }
}

fn role(code: i16) -> Tried<Role> {
    Ok(from_code(&Role::ALL, code, "access", "role")?)
}

fn read_key(row: &Row) -> Tried<ApiKey> {
    Ok(ApiKey {
        id: get(row, "id")?,
        tenant: TenantNo(get(row, "tenant_no")?),
        tenant_name: get(row, "tenant_name")?,
        name: get(row, "name")?,
        role: role(get(row, "role")?)?,
        created_by: get(row, "created_by")?,
        created_at: time(row, "created_at")?,
        expires_at: maybe_time(row, "expires_at")?,
        revoked_at: maybe_time(row, "revoked_at")?,
        last_used_at: maybe_time(row, "last_used_at")?,
    })
}

/// The tenant number of audit entries without an authenticated client.
const UNAUTHENTICATED: i32 = 0;
/// Matches no tenant.
const NONE: i32 = -1;
/// Entries read at once.
const CHUNK: u32 = 500;

/// A walk through the audit log from the newest entry to older entries.
struct Walk<'a> {
    tenants: (i32, i32),
    filter: &'a AuditFilter,
    page: PageRequest<AuditCursor>,
}

impl Walk<'_> {
    fn from(&self) -> i64 {
        self.filter.from.unwrap_or(Timestamp::MIN).as_micros()
    }

    async fn go(
        &self,
        connection: &Connection,
    ) -> Tried<(Vec<(AuditCursor, AuditEntry)>, Option<AuditCursor>)> {
        let Self { tenants, filter, page } = self;
        let (limit, from, chunk) = (page.limit as usize, self.from(), i64::from(CHUNK));
        let mut cursor = filter.start(page.after);
        let (mut items, mut to_skip, mut scanned) = (Vec::new(), page.offset, 0);
        let mut is_over = false;
        while !is_over && items.len() <= limit && scanned < AUDIT_SCAN_MAX {
            let at = cursor.at.as_micros();
            let params: Params<'_> = &[&tenants.0, &tenants.1, &at, &cursor.no, &from, &chunk];
            let rows = connection.rows(sql!("list_audit"), params).await?;
            is_over = rows.len() < CHUNK as usize;
            for row in &rows {
                let (at, entry) = read_entry(row)?;
                (cursor, scanned) = (at, scanned + 1);
                if !filter.passes(&entry) {
                    continue;
                }
                match to_skip {
                    0 => items.push((at, entry)),
                    _ => to_skip -= 1,
                }
                if items.len() > limit {
                    break;
                }
            }
        }
        let next = if items.len() > limit {
            items.truncate(limit);
            items.last().map(|(cursor, _)| *cursor)
        } else {
            Some(cursor).filter(|_| !is_over)
        };
        Ok((items, next))
    }

    async fn count(&self, connection: &Connection) -> Tried<(u64, bool)> {
        let Self { tenants, filter, .. } = self;
        let (before, from) = (filter.start(None).at.as_micros(), self.from());
        let (most, look) = (u64::from(AUDIT_SCAN_MAX), i64::from(AUDIT_SCAN_MAX) + 1);
        let AuditFilter { subject, target, denied, .. } = filter;
        let params: Params<'_> =
            &[&tenants.0, &tenants.1, &before, &from, subject, target, denied, &look];
        let row = connection.row(sql!("list_audit_count"), params).await?;
        Ok((count(&row, "matching")?.min(most), count(&row, "scanned")? > most))
    }
}

fn read_entry(row: &Row) -> Tried<(AuditCursor, AuditEntry)> {
    let cursor = AuditCursor { no: get(row, "no")?, at: time(row, "at")? };
    let tenant: i32 = get(row, "tenant_no")?;
    let code: Option<i16> = get(row, "role")?;
    let entry = AuditEntry {
        at: cursor.at,
        tenant: Some(TenantNo(tenant)).filter(|_| tenant != UNAUTHENTICATED),
        subject: get(row, "subject")?,
        role: code.map(role).transpose()?,
        action: get(row, "action")?,
        target: get(row, "target")?,
        status: get::<i16>(row, "status")?.cast_unsigned(),
        denied: get(row, "denied")?,
        detail: get(row, "detail")?,
        remote: get(row, "remote")?,
        request_id: get(row, "request_id")?,
    };
    Ok((cursor, entry))
}
