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
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, maybe_time, micros, time};

#[async_trait]
impl AccessStore for PostgresStore {
    async fn create_key(
        &self,
        scope: &Scope,
        key: NewApiKey,
        now: Now,
    ) -> Result<bool, StoreError> {
        self.api
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

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        self.api
            .run(*hash, |connection, hash| async move {
                let sql = sql!("find_key");
                let row = connection.maybe_row(sql, &[&&hash[..]]).await?;
                row.as_ref().map(read_key).transpose()
            })
            .await
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        // All nodes update API keys in the order of their ids, so that two nodes cannot deadlock.
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        self.api
            .run((ids, at.as_micros()), |connection, args| async move {
                let sql = sql!("use_keys");
                connection.change(sql, &[&args.0, &args.1]).await?;
                Ok(())
            })
            .await
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        self.api
            .run((scope.tenant.0, id, micros(now.literal())), |connection, args| async move {
                let sql = sql!("revoke_key");
                Ok(connection.change(sql, &[&args.0, &args.1, &args.2]).await? == 1)
            })
            .await
    }

    async fn list_keys(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<ApiKey, Uuid>, StoreError> {
        self.api
            .run((scope.tenant.0, page), |connection, args| async move {
                let (tenant, page) = &*args;
                let after = page.after.unwrap_or(Uuid::nil());
                // One extra row shows whether there is another page.
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

    async fn record_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.api
            .run(entries, |connection, entries| async move {
                let all = || entries.iter();
                let at: Vec<i64> = all().map(|entry| entry.at.as_micros()).collect();
                let tenant: Vec<i32> = all()
                    .map(|entry| entry.tenant.map_or(UNAUTHENTICATED, |tenant| tenant.0))
                    .collect();
                let subject: Vec<&str> = all().map(|entry| entry.subject.as_str()).collect();
                let role: Vec<Option<i16>> =
                    all().map(|entry| entry.role.map(|role| role as i16)).collect();
                let action: Vec<&str> = all().map(|entry| entry.action.as_str()).collect();
                let target: Vec<Option<&str>> =
                    all().map(|entry| entry.target.as_deref()).collect();
                let status: Vec<i16> = all().map(|entry| entry.status.cast_signed()).collect();
                let denied: Vec<bool> = all().map(|entry| entry.denied).collect();
                let detail: Vec<Option<&str>> =
                    all().map(|entry| entry.detail.as_deref()).collect();
                let remote: Vec<Option<&str>> =
                    all().map(|entry| entry.remote.as_deref()).collect();
                let request: Vec<&str> = all().map(|entry| entry.request_id.as_str()).collect();
                connection
                    .change(
                        sql!("record_audit"),
                        &[
                            &at, &tenant, &subject, &role, &action, &target, &status, &denied,
                            &detail, &remote, &request,
                        ],
                    )
                    .await?;
                Ok(())
            })
            .await
    }

    async fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Result<Page<(AuditCursor, AuditEntry), AuditCursor>, StoreError> {
        let other = if filter.with_unknown { UNAUTHENTICATED } else { NONE };
        self.api
            .run((scope.tenant.0, other, filter.clone(), page), |connection, args| async move {
                let (tenant, other, filter, page) = &*args;
                let walk = Walk { tenants: (*tenant, *other), filter, page: *page };
                let (items, next) = walk.go(&connection).await?;
                let (total, total_is_estimate) = walk.count(&connection).await?;
                Ok(Page { items, total, total_is_estimate, next })
            })
            .await
    }

    async fn prune_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.api
            .run((before.as_micros(), i64::from(limit)), |connection, args| async move {
                let sql = sql!("prune_audit");
                connection.change(sql, &[&args.0, &args.1]).await
            })
            .await
    }
}

fn role(code: i16) -> Result<Role, StoreError> {
    from_code(&Role::ALL, code, "access", "role")
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
            let rows = connection
                .rows(
                    sql!("list_audit"),
                    &[&tenants.0, &tenants.1, &cursor.at.as_micros(), &cursor.no, &from, &chunk],
                )
                .await?;
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
        let before = filter.start(None).at.as_micros();
        let most = u64::from(AUDIT_SCAN_MAX);
        let look = i64::from(AUDIT_SCAN_MAX) + 1;
        let row = connection
            .row(
                sql!("list_audit_count"),
                &[
                    &tenants.0,
                    &tenants.1,
                    &before,
                    &self.from(),
                    &filter.subject,
                    &filter.target,
                    &filter.denied,
                    &look,
                ],
            )
            .await?;
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
