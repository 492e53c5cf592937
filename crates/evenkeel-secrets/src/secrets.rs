//! Stores, reads and re-encrypts secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::TenantNo;
use evenkeel_core::chance::Chance;
use evenkeel_core::secret::{SecretSource, SecretValues, VALUE_BYTES_MAX};
use evenkeel_store::{
    NewSecret, Now, Reseal, Role, Scope, SealedSecret, SecretInfo, SecretReach, Store, StoreError,
};
use tokio::sync::Semaphore;

use crate::keyring::{Keyring, OpenError};

/// Maximum number of attempts that read secrets at the same time. Reads of secrets share database
/// connections with the scheduler and must not delay the scheduler.
const LOOK_UPS: usize = 4;

/// Maximum number of secret values that one transaction re-encrypts.
const BATCH: u32 = 100;

/// Maximum number of secrets that one call of [`Secrets::rotate`] reads.
const ROTATED_MAX: u32 = 1000;

/// Gives access to the secrets in a store, with the keys to encrypt and decrypt them.
pub struct Secrets {
    store: Arc<dyn Store>,
    keys: Option<Keyring>,
    chance: Arc<dyn Chance>,
    look_ups: Semaphore,
}

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "this server has no key to encrypt secrets with; start it with --secret-key-file, the \
         variable EVENKEEL_SECRET_KEY or secret_key_command, on every node of the cluster"
    )]
    NoKey,
    #[error("the value has {0} bytes; it must have 1 to 65536")]
    Length(usize),
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// The result of a key rotation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rotated {
    /// Number of secret values that were re-encrypted.
    pub resealed: u64,
    /// Names of the secrets that could not be decrypted, with the reason.
    pub unreadable: Vec<(String, OpenError)>,
    /// The last secret that the key rotation read; `None` if the rotation has read all secrets.
    pub next: Option<(TenantNo, String)>,
}

impl Secrets {
    /// If `keys` is `None`, no secret can be stored or used.
    pub fn new(store: Arc<dyn Store>, keys: Option<Keyring>, chance: Arc<dyn Chance>) -> Self {
        Self { store, keys, chance, look_ups: Semaphore::new(LOOK_UPS) }
    }

    pub fn newest_key(&self) -> Option<&str> {
        self.keys.as_ref().map(Keyring::newest)
    }

    /// Stores a secret value and returns the version of the secret. Version 1 means that the secret
    /// did not exist before.
    pub async fn put(
        &self,
        scope: &Scope,
        name: &str,
        value: &str,
        by: &str,
    ) -> Result<SecretInfo, SecretError> {
        let keys = self.keys.as_ref().ok_or(SecretError::NoKey)?;
        if value.is_empty() || value.len() > VALUE_BYTES_MAX {
            return Err(SecretError::Length(value.len()));
        }
        let sealed = keys.seal(scope.tenant, name, value, &*self.chance);
        let secret = NewSecret { name: name.into(), sealed, by: by.into() };
        Ok(self.store.put_secret(scope, secret, Now::Database).await?)
    }

    /// Re-encrypts secret values with the newest key. One call reads a limited number of secrets,
    /// beginning after the secret `after`.
    pub async fn rotate(
        &self,
        scope: &Scope,
        reach: SecretReach,
        mut after: Option<(TenantNo, String)>,
    ) -> Result<Rotated, SecretError> {
        let keys = self.keys.as_ref().ok_or(SecretError::NoKey)?;
        let mut done = Rotated::default();
        for _ in 0..ROTATED_MAX / BATCH {
            let stale = self.store.stale_secrets(scope, reach, keys.newest(), after, BATCH).await?;
            let is_last = stale.len() < BATCH as usize;
            after = stale.last().map(|last| (last.tenant, last.name.clone()));
            let mut batch = Vec::with_capacity(stale.len());
            for secret in stale {
                match self.resealed(keys, &secret) {
                    Ok(reseal) => batch.push(reseal),
                    Err(error) => done.unreadable.push((secret.name, error)),
                }
            }
            if !batch.is_empty() {
                done.resealed += self.store.reseal_secrets(scope, reach, batch).await?;
            }
            if is_last {
                return Ok(done);
            }
        }
        done.next = after;
        Ok(done)
    }

    fn resealed(&self, keys: &Keyring, secret: &SealedSecret) -> Result<Reseal, OpenError> {
        let SealedSecret { tenant, name, sealed } = secret;
        let value = keys.open(*tenant, name, sealed)?;
        Ok(Reseal {
            tenant: *tenant,
            name: name.clone(),
            if_nonce: sealed.nonce.clone(),
            sealed: keys.seal(*tenant, name, &value, &*self.chance),
        })
    }

    async fn look_up(
        &self,
        tenant: TenantNo,
        names: &[String],
    ) -> Result<Vec<Option<String>>, String> {
        // The semaphore is never closed.
        let _turn = self.look_ups.acquire().await;
        let scope = Scope { tenant, role: Role::Viewer };
        let found = self.store.get_secrets(&scope, names).await.map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            format!(
                "the job's secrets could not be read: {}",
                why.unwrap_or_else(|| error.to_string())
            )
        })?;
        let found: BTreeMap<&str, &SealedSecret> =
            found.iter().map(|secret| (secret.name.as_str(), secret)).collect();
        names
            .iter()
            .map(|name| {
                let Some(secret) = found.get(name.as_str()) else { return Ok(None) };
                let failed = |why: String| format!("the secret {name:?} can't be used: {why}");
                let keys = self.keys.as_ref().ok_or_else(|| {
                    let key = secret.sealed.key_id.clone();
                    failed(OpenError::UnknownKey(key).to_string())
                })?;
                let value = keys.open(tenant, name, &secret.sealed);
                value.map(Some).map_err(|error| failed(error.to_string()))
            })
            .collect()
    }
}

impl SecretSource for Secrets {
    fn values<'a>(&'a self, tenant: TenantNo, names: &'a [String]) -> SecretValues<'a> {
        Box::pin(self.look_up(tenant, names))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use evenkeel_core::Timestamp;
    use evenkeel_store_testkit::model::ModelStore;

    use super::*;

    struct Counting(AtomicU64);

    impl Chance for Counting {
        fn bits(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    fn store() -> Arc<dyn Store> {
        Arc::new(ModelStore::new(Arc::new(|| Timestamp::from_micros(1))))
    }

    fn secrets(store: &Arc<dyn Store>, keys: &[u8]) -> Secrets {
        let text: Vec<String> = keys.iter().map(|key| format!("{key:02x}").repeat(32)).collect();
        let keys = (!keys.is_empty()).then(|| Keyring::read(&text.join("\n")).unwrap());
        // The test's random numbers start at a value that depends on the number of keys, so that no
        // nonce repeats.
        let start = u64::from(text.iter().map(String::len).sum::<usize>() as u32) << 32;
        Secrets::new(Arc::clone(store), keys, Arc::new(Counting(AtomicU64::new(start))))
    }

    async fn scope(store: &Arc<dyn Store>, name: &str) -> Scope {
        Scope { tenant: store.tenant(name).await.unwrap(), role: Role::Admin }
    }

    async fn value(secrets: &Secrets, scope: &Scope, name: &str) -> Result<Option<String>, String> {
        Ok(secrets.values(scope.tenant, &[name.to_owned()]).await?.remove(0))
    }

    #[tokio::test]
    async fn value_is_returned_to_its_own_tenant_only() {
        let store = store();
        let (ann, bob) = (scope(&store, "ann").await, scope(&store, "bob").await);
        let secrets = secrets(&store, &[1]);
        assert_eq!(secrets.put(&ann, "a", "hunter22", "ann").await.unwrap().version, 1);
        assert_eq!(value(&secrets, &ann, "a").await.unwrap().as_deref(), Some("hunter22"));
        assert_eq!(value(&secrets, &bob, "a").await.unwrap(), None);
        let stored = store.get_secrets(&ann, &["a".to_owned()]).await.unwrap();
        assert!(!stored[0].sealed.ciphertext.windows(8).any(|part| part == b"hunter22"));
    }

    #[tokio::test]
    async fn secrets_need_a_key() {
        let store = store();
        let ann = scope(&store, "ann").await;
        secrets(&store, &[1]).put(&ann, "a", "v", "ann").await.unwrap();
        let keyless = secrets(&store, &[]);
        assert!(matches!(keyless.put(&ann, "b", "v", "ann").await, Err(SecretError::NoKey)));
        assert!(value(&keyless, &ann, "a").await.unwrap_err().contains("does not have"));
        for length in [0, VALUE_BYTES_MAX + 1] {
            let put = secrets(&store, &[1]).put(&ann, "b", &"x".repeat(length), "ann").await;
            assert!(matches!(put, Err(SecretError::Length(n)) if n == length));
        }
    }

    #[tokio::test]
    async fn old_key_is_not_needed_after_a_rotation() {
        let store = store();
        let (ann, bob) = (scope(&store, "ann").await, scope(&store, "bob").await);
        let before = secrets(&store, &[1]);
        for n in 0..250 {
            before.put(&ann, &format!("a{n}"), "v", "ann").await.unwrap();
        }
        before.put(&bob, "b", "w", "bob").await.unwrap();
        let both = secrets(&store, &[2, 1]);
        let done = both.rotate(&ann, SecretReach::OwnTenant, None).await.unwrap();
        assert_eq!(done, Rotated { resealed: 250, ..Rotated::default() });
        let done = both.rotate(&ann, SecretReach::AllTenants, None).await.unwrap();
        assert_eq!(done.resealed, 1);
        assert_eq!(both.rotate(&ann, SecretReach::AllTenants, None).await.unwrap().resealed, 0);
        let after = secrets(&store, &[2]);
        assert_eq!(value(&after, &ann, "a249").await.unwrap().as_deref(), Some("v"));
        assert_eq!(value(&after, &bob, "b").await.unwrap().as_deref(), Some("w"));
        assert!(value(&before, &bob, "b").await.unwrap_err().contains("does not have"));
    }

    #[tokio::test]
    async fn rotation_is_bounded_and_reports_unreadable_secrets() {
        let store = store();
        let ann = scope(&store, "ann").await;
        let lost = secrets(&store, &[9]);
        for n in 0..=ROTATED_MAX {
            lost.put(&ann, &format!("a{n:05}"), "v", "ann").await.unwrap();
        }
        let secrets = secrets(&store, &[2]);
        let first = secrets.rotate(&ann, SecretReach::OwnTenant, None).await.unwrap();
        assert_eq!((first.resealed, first.unreadable.len()), (0, ROTATED_MAX as usize));
        let rest = secrets.rotate(&ann, SecretReach::OwnTenant, first.next).await.unwrap();
        assert_eq!((rest.unreadable.len(), rest.next), (1, None));
        assert_eq!(rest.unreadable[0].0, format!("a{ROTATED_MAX:05}"));
    }
}
