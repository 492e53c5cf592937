//! Named secrets, as they are stored: encrypted, by someone who has the key.

use evenkeel_core::{TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The value of a secret, encrypted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed {
    /// The key it was encrypted with.
    pub key_id: String,
    /// Used once with that key.
    pub nonce: Vec<u8>,
    /// The encrypted value and its tag.
    pub ciphertext: Vec<u8>,
}

/// A secret to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSecret {
    /// Its name, unique within its tenant.
    pub name: String,
    /// Its value.
    pub sealed: Sealed,
    /// The subject that sets it.
    pub by: String,
}

/// What is known of a secret besides its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretInfo {
    /// Its name.
    pub name: String,
    /// Counted from 1, raised with every new value.
    pub version: i32,
    /// The key its value is encrypted with.
    pub key_id: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The subject that created it.
    pub created_by: String,
    /// When it got its present value.
    pub updated_at: Timestamp,
    /// The subject that set that.
    pub updated_by: String,
}

/// A secret with its encrypted value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedSecret {
    /// Its tenant.
    pub tenant: TenantNo,
    /// Its name.
    pub name: String,
    /// Its value.
    pub sealed: Sealed,
}

/// A value that is to be stored under another key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reseal {
    /// The tenant of the secret.
    pub tenant: TenantNo,
    /// Its name.
    pub name: String,
    /// The nonce of the value that was read: another one means another value.
    pub if_nonce: Vec<u8>,
    /// The same value, encrypted anew.
    pub sealed: Sealed,
}

/// Whose secrets a change of keys concerns.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SecretReach {
    /// Those of the scope's tenant.
    OwnTenant,
    /// Those of all tenants.
    AllTenants,
}

impl SecretReach {
    /// The tenant whose secrets are meant; `None` for all.
    pub fn tenant(self, scope: &Scope) -> Option<TenantNo> {
        match self {
            Self::OwnTenant => Some(scope.tenant),
            Self::AllTenants => None,
        }
    }
}

verbs! {
    /// Named secrets.
    trait SecretStore {}

    /// Stores a secret, or replaces the value of the one that has its name. The version says which:
    /// that of a new one is 1.
    write fn put_secret(scope: &Scope, secret: NewSecret, now: Now) -> SecretInfo;

    /// Deletes a secret; false if the tenant has none of this name.
    write fn delete_secret(scope: &Scope, name: &str) -> bool;

    /// The scope's secrets in the byte order of their names, without values.
    read fn list_secrets(scope: &Scope, page: PageRequest<String>) -> Page<SecretInfo, String>;

    /// What is known of a secret of the scope.
    read fn get_secret(scope: &Scope, name: &str) -> Option<SecretInfo>;

    /// The scope's secrets of these names, in any order; names it does not have are left out.
    read fn get_secrets(scope: &Scope, names: &[String]) -> Vec<SealedSecret>;

    /// Up to `limit` secrets whose values are not encrypted with the key `key_id`, after the one named
    /// by `after`, in the order of tenant and name.
    read fn stale_secrets(
        scope: &Scope,
        reach: SecretReach,
        key_id: &str,
        after: Option<(TenantNo, String)>,
        limit: u32,
    ) -> Vec<SealedSecret>;

    /// Stores values under another key and says how many. A secret that is gone, has another value by
    /// now or is out of reach stays as it is; version and times never change.
    write fn reseal_secrets(scope: &Scope, reach: SecretReach, secrets: Vec<Reseal>) -> u64;
}
