//! Named secrets as they are stored: encrypted, with keys that the store does not have.

use evenkeel_core::{TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// An encrypted value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// The key that it was encrypted with.
    pub key_id: String,
    /// Used once with that key.
    pub nonce: Vec<u8>,
    /// The encrypted value and its tag.
    pub ciphertext: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSecret {
    /// Unique within its tenant.
    pub name: String,
    pub sealed: Sealed,
    /// The subject that sets it.
    pub by: String,
}

/// A secret without its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretInfo {
    pub name: String,
    /// 1 for a new secret, raised with every new value.
    pub version: i32,
    /// The key that the value is encrypted with.
    pub key_id: String,
    pub created_at: Timestamp,
    /// The subject that created it.
    pub created_by: String,
    /// When the current value was set.
    pub updated_at: Timestamp,
    /// The subject that set the current value.
    pub updated_by: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedSecret {
    pub tenant: TenantNo,
    pub name: String,
    pub sealed: Sealed,
}

/// A value to store under another key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reseal {
    pub tenant: TenantNo,
    pub name: String,
    /// The nonce of the value that was read. If it differs, the secret has a new value.
    pub if_nonce: Vec<u8>,
    /// The same value under the new key.
    pub sealed: Sealed,
}

/// The secrets that a change of keys affects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SecretReach {
    OwnTenant,
    AllTenants,
}

impl SecretReach {
    /// Returns the tenant whose secrets are affected; `None` for all.
    pub fn tenant(self, scope: &Scope) -> Option<TenantNo> {
        match self {
            Self::OwnTenant => Some(scope.tenant),
            Self::AllTenants => None,
        }
    }
}

verbs! {
    trait SecretStore {}

    /// Creates a secret or replaces its value. Version 1 means that it was created.
    write fn put_secret(scope: &Scope, secret: NewSecret, now: Now) -> SecretInfo;

    /// Deletes a secret. Returns false if the tenant has none of this name.
    write fn delete_secret(scope: &Scope, name: &str) -> bool;

    /// Returns the scope's secrets without values, in byte order of their names.
    read fn list_secrets(scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String>;

    read fn get_secret(scope: &Scope, name: &str) -> Option<SecretInfo>;

    /// Returns the scope's secrets of these names, in any order, without unknown names.
    read fn get_secrets(scope: &Scope, names: &[String]) -> Vec<SealedSecret>;

    /// Returns up to `limit` secrets that are not encrypted with the key `key_id`, after `after`,
    /// by tenant and name.
    read fn stale_secrets(
        scope: &Scope,
        reach: SecretReach,
        key_id: &str,
        after: Option<(TenantNo, String)>,
        limit: u32,
    ) -> Vec<SealedSecret>;

    /// Stores values under another key. Returns their number. Skips secrets that were deleted, have
    /// a new value, or are out of reach. Versions and times do not change.
    write fn reseal_secrets(scope: &Scope, reach: SecretReach, secrets: Vec<Reseal>) -> u64;
}
