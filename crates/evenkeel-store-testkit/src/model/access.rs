//! Stores API keys and the audit log in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::Timestamp;
use evenkeel_store::{
    AUDIT_SCAN_MAX, AccessStore, ApiKey, AuditCursor, AuditEntry, AuditFilter, KeyHash, NewApiKey,
    Now, Page, PageRequest, Scope, StoreError,
};
use uuid::Uuid;

use super::ModelStore;
use super::data::{Data, count};
use super::lists::{cut, with_items};

#[derive(Default)]
pub(super) struct Access {
    keys: BTreeMap<Uuid, (KeyHash, ApiKey)>,
    /// The audit log, ordered by time, and by arrival for equal times.
    log: BTreeMap<AuditCursor, AuditEntry>,
    written: i64,
}

impl Data {
    fn create_key(&mut self, scope: &Scope, key: NewApiKey, now: Timestamp) -> bool {
        let same_name = |other: &ApiKey| {
            other.tenant == scope.tenant && other.name == key.name && other.revoked_at.is_none()
        };
        if self.access.keys.values().any(|(_, other)| same_name(other)) {
            return false;
        }
        let name_of = |(name, no): (&String, &_)| (*no == scope.tenant).then(|| name.clone());
        let made = ApiKey {
            id: key.id,
            tenant: scope.tenant,
            tenant_name: self.tenants.iter().find_map(name_of).unwrap_or_default(),
            name: key.name,
            role: key.role,
            created_by: key.created_by,
            created_at: now,
            expires_at: key.expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        self.access.keys.insert(key.id, (key.hash, made));
        true
    }

    fn list_keys(&self, scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid> {
        let own = self.access.keys.values().filter(|(_, key)| key.tenant == scope.tenant);
        let page = cut(own.map(|(_, key)| key.id).collect(), page, |id, after| id > after);
        with_items(page, |id| self.access.keys.get(id).map(|(_, key)| key.clone()))
    }

    fn record(&mut self, entries: Vec<AuditEntry>) {
        for entry in entries {
            self.access.written += 1;
            let place = AuditCursor { at: entry.at, no: self.access.written };
            self.access.log.insert(place, entry);
        }
    }

    fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Page<(AuditCursor, AuditEntry), AuditCursor> {
        let own = |entry: &AuditEntry| match entry.tenant {
            Some(tenant) => tenant == scope.tenant,
            None => filter.with_unknown,
        };
        let (limit, most) = (page.limit as usize, AUDIT_SCAN_MAX as usize);
        let seen = |after| self.access.log.range(..filter.start(after)).rev();
        let of_time = |entry: &AuditEntry| filter.from.is_none_or(|from| entry.at >= from);
        let (mut items, mut to_skip, mut place) = (Vec::new(), page.offset, None);
        let mut rest = seen(page.after).filter(|(_, entry)| own(entry) && of_time(entry));
        for (at, entry) in rest.by_ref().take(most) {
            place = Some(*at);
            if !filter.passes(entry) {
                continue;
            }
            match to_skip {
                0 => items.push((*at, entry.clone())),
                _ => to_skip -= 1,
            }
            if items.len() > limit {
                break;
            }
        }
        let next = if items.len() > limit {
            items.truncate(limit);
            items.last().map(|(place, _)| *place)
        } else {
            place.filter(|_| rest.next().is_some())
        };
        let mut counted = seen(None).filter(|(_, entry)| own(entry) && of_time(entry));
        let total = counted.by_ref().take(most).filter(|(_, entry)| filter.passes(entry)).count();
        Page { items, total: count(total), total_is_estimate: counted.next().is_some(), next }
    }

    fn prune_audit(&mut self, before: Timestamp, limit: u32) -> u64 {
        let old = self.access.log.keys().take(limit as usize).filter(|place| place.at < before);
        let old: Vec<AuditCursor> = old.copied().collect();
        old.iter().for_each(|place| drop(self.access.log.remove(place)));
        count(old.len())
    }
}

#[async_trait]
impl AccessStore for ModelStore {
    async fn create_key(
        &self,
        scope: &Scope,
        key: NewApiKey,
        now: Now,
    ) -> Result<bool, StoreError> {
        let now = self.resolve(now);
        Ok(self.lock().create_key(scope, key, now))
    }

    async fn find_key(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        let data = self.lock();
        let found = data.access.keys.values().find(|(other, _)| other == hash);
        Ok(found.map(|(_, key)| key.clone()))
    }

    async fn use_keys(&self, ids: &[Uuid], at: Timestamp) -> Result<(), StoreError> {
        let mut data = self.lock();
        for id in ids {
            if let Some((_, key)) = data.access.keys.get_mut(id) {
                key.last_used_at = key.last_used_at.max(Some(at));
            }
        }
        Ok(())
    }

    async fn revoke_key(&self, scope: &Scope, id: Uuid, now: Now) -> Result<bool, StoreError> {
        let now = self.resolve(now);
        let mut data = self.lock();
        let key = data.access.keys.get_mut(&id).map(|(_, key)| key);
        let good = key.filter(|key| key.tenant == scope.tenant && key.revoked_at.is_none());
        Ok(good.map(|key| key.revoked_at = Some(now)).is_some())
    }

    async fn list_keys(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<ApiKey, Uuid>, StoreError> {
        Ok(self.lock().list_keys(scope, page))
    }

    async fn record_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.lock().record(entries);
        Ok(())
    }

    async fn list_audit(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
        page: PageRequest<AuditCursor>,
    ) -> Result<Page<(AuditCursor, AuditEntry), AuditCursor>, StoreError> {
        Ok(self.lock().list_audit(scope, filter, page))
    }

    async fn prune_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        Ok(self.lock().prune_audit(before, limit))
    }
}
