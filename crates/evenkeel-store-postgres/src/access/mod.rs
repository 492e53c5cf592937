//! Who may come in, and who did what.

mod audit;
mod keys;

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::{
    AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey, Now, Page,
    PageRequest, Role, Scope, StoreError,
};
use uuid::Uuid;

use crate::PostgresStore;

#[async_trait]
impl AccessStore for PostgresStore {
    async fn create_key(
        &self,
        scope: &Scope,
        key: NewApiKey,
        now: Now,
    ) -> Result<bool, StoreError> {
        keys::create_key(self, scope, key, now).await
    }

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        keys::find_key(self, hash).await
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        keys::use_keys(self, ids, at).await
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        keys::revoke_key(self, scope, id, now).await
    }

    async fn list_keys(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<ApiKey, Uuid>, StoreError> {
        keys::list_keys(self, scope, page).await
    }

    async fn record_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        audit::record(self, entries).await
    }

    async fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Result<Page<(AuditCursor, AuditEntry), AuditCursor>, StoreError> {
        audit::list_audit(self, scope, filter, page).await
    }

    async fn prune_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        audit::prune_audit(self, before, limit).await
    }
}

fn role(code: i16) -> Result<Role, StoreError> {
    let known = usize::try_from(code).ok().and_then(|code| Role::ALL.get(code)).copied();
    known.ok_or_else(|| StoreError::corrupt("access", "role", format!("{code} is unknown")))
}
