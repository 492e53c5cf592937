//! Named secrets, which are stored encrypted; the store does not have the encryption keys.

use evenkeel_core::{TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// Id of the key that encrypted the value.
    pub key_id: String,
    /// A nonce is used only once with the same key.
    pub nonce: Vec<u8>,
    /// The encrypted value and its authentication tag.
    pub ciphertext: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSecret {
    /// Unique within the tenant.
    pub name: String,
    pub sealed: Sealed,
    /// The user or program that sets the secret.
    pub by: String,
}

/// A secret without its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretInfo {
    pub name: String,
    /// Version of the value: 1 for a new secret, incremented with every new value.
    pub version: i32,
    /// Id of the key that encrypted the value.
    pub key_id: String,
    pub created_at: Timestamp,
    /// The user or program that created the secret.
    pub created_by: String,
    /// When the current value was set.
    pub updated_at: Timestamp,
    /// The user or program that set the current value.
    pub updated_by: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedSecret {
    pub tenant: TenantNo,
    pub name: String,
    pub sealed: Sealed,
}

/// A secret that is encrypted again with another key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reseal {
    pub tenant: TenantNo,
    pub name: String,
    /// Nonce of the encrypted value that was read. If the stored nonce differs, the secret has a
    /// new value and is skipped.
    pub if_nonce: Vec<u8>,
    /// The value of the secret, encrypted with the new key.
    pub sealed: Sealed,
}

/// The tenants whose secrets a change of the encryption key affects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SecretReach {
    OwnTenant,
    AllTenants,
}

impl SecretReach {
    /// Returns the tenant whose secrets are affected; `None` for all tenants.
    pub fn tenant(self, scope: &Scope) -> Option<TenantNo> {
        match self {
            Self::OwnTenant => Some(scope.tenant),
            Self::AllTenants => None,
        }
    }
}

verbs! {
    trait SecretStore {}

    /// Creates a secret or replaces its value. Version 1 in the result means that the secret was
    /// created.
    write fn put_secret(scope: &Scope, secret: NewSecret, now: Now) -> SecretInfo;

    /// Deletes a secret. Returns false if the tenant has no secret with this name.
    write fn delete_secret(scope: &Scope, name: &str) -> bool;

    /// Returns the tenant's secrets without values, in byte order of their names.
    read fn list_secrets(scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String>;

    read fn get_secret(scope: &Scope, name: &str) -> Option<SecretInfo>;

    /// Returns the tenant's secrets with these names, in any order; unknown names are ignored.
    read fn get_secrets(scope: &Scope, names: &[String]) -> Vec<SealedSecret>;

    /// Returns up to `limit` secrets that are not encrypted with the key `key_id`, ordered by
    /// tenant and name, starting after `after`.
    read fn stale_secrets(
        scope: &Scope,
        reach: SecretReach,
        key_id: &str,
        after: Option<(TenantNo, String)>,
        limit: u32,
    ) -> Vec<SealedSecret>;

    /// Stores secrets encrypted with another key. Returns the number of stored secrets. Skips
    /// secrets that were deleted, have a new value, or belong to a tenant outside `reach`. Versions
    /// and timestamps of the secrets do not change.
    write fn reseal_secrets(scope: &Scope, reach: SecretReach, secrets: Vec<Reseal>) -> u64;
}
