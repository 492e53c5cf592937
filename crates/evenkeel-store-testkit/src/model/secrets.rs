//! Named secrets.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{
    NewSecret, Now, Page, PageRequest, Reseal, Scope, Sealed, SealedSecret, SecretInfo,
    SecretReach, SecretStore, StoreError,
};

use super::ModelStore;
use super::data::Data;
use super::lists::{cut, with_items};

pub(super) type Secrets = BTreeMap<(TenantNo, String), (SecretInfo, Sealed)>;

impl Data {
    fn put_secret(&mut self, scope: &Scope, new: NewSecret, now: Timestamp) -> SecretInfo {
        let NewSecret { name, sealed, by } = new;
        let key = (scope.tenant, name.clone());
        let old = self.secrets.get(&key).map(|(info, _)| info);
        let info = SecretInfo {
            name,
            version: old.map_or(1, |old| old.version + 1),
            key_id: sealed.key_id.clone(),
            created_at: old.map_or(now, |old| old.created_at),
            created_by: old.map_or_else(|| by.clone(), |old| old.created_by.clone()),
            updated_at: now,
            updated_by: by,
        };
        self.secrets.insert(key, (info.clone(), sealed));
        info
    }

    fn list_secrets(&self, scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String> {
        let own = self.secrets.keys().filter(|(tenant, _)| *tenant == scope.tenant);
        let page =
            cut(own.map(|(_, name)| name.clone()).collect(), page, |name, after| name > after);
        let info = |name: &String| self.secrets.get(&(scope.tenant, name.clone()));
        with_items(page, |name| info(name).map(|(info, _)| info.clone()))
    }

    fn reseal(&mut self, tenant: Option<TenantNo>, one: Reseal) -> bool {
        let in_reach = tenant.is_none_or(|tenant| tenant == one.tenant);
        let known = self.secrets.get_mut(&(one.tenant, one.name));
        let Some((info, sealed)) = known.filter(|(_, old)| in_reach && old.nonce == one.if_nonce)
        else {
            return false;
        };
        info.key_id.clone_from(&one.sealed.key_id);
        *sealed = one.sealed;
        true
    }
}

fn sealed_of((key, (_, sealed)): (&(TenantNo, String), &(SecretInfo, Sealed))) -> SealedSecret {
    SealedSecret { tenant: key.0, name: key.1.clone(), sealed: sealed.clone() }
}

#[async_trait]
impl SecretStore for ModelStore {
    async fn put_secret(
        &self,
        scope: &Scope,
        secret: NewSecret,
        now: Now,
    ) -> Result<SecretInfo, StoreError> {
        let now = self.resolve(now);
        Ok(self.lock().put_secret(scope, secret, now))
    }

    async fn delete_secret(&self, scope: &Scope, name: &str) -> Result<bool, StoreError> {
        Ok(self.lock().secrets.remove(&(scope.tenant, name.to_owned())).is_some())
    }

    async fn list_secrets(
        &self,
        scope: &Scope,
        page: PageRequest<String>,
    ) -> Result<Page<SecretInfo, String>, StoreError> {
        Ok(self.lock().list_secrets(scope, page))
    }

    async fn get_secret(
        &self,
        scope: &Scope,
        name: &str,
    ) -> Result<Option<SecretInfo>, StoreError> {
        let data = self.lock();
        let found = data.secrets.get(&(scope.tenant, name.to_owned()));
        Ok(found.map(|(info, _)| info.clone()))
    }

    async fn get_secrets(
        &self,
        scope: &Scope,
        names: &[String],
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let data = self.lock();
        let found = names
            .iter()
            .filter_map(|name| data.secrets.get_key_value(&(scope.tenant, name.clone())));
        Ok(found.map(sealed_of).collect())
    }

    async fn stale_secrets(
        &self,
        scope: &Scope,
        reach: SecretReach,
        key_id: &str,
        after: Option<(TenantNo, String)>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let (data, own) = (self.lock(), reach.tenant(scope));
        let found = data
            .secrets
            .iter()
            .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
            .filter(|((tenant, _), _)| own.is_none_or(|own| own == *tenant))
            .filter(|(_, (_, sealed))| sealed.key_id != key_id);
        Ok(found.take(limit as usize).map(sealed_of).collect())
    }

    async fn reseal_secrets(
        &self,
        scope: &Scope,
        reach: SecretReach,
        secrets: Vec<Reseal>,
    ) -> Result<u64, StoreError> {
        let mut data = self.lock();
        let tenant = reach.tenant(scope);
        Ok(secrets.into_iter().map(|one| u64::from(data.reseal(tenant, one))).sum())
    }
}
