//! `/api/v1/api-keys…`: API keys that programs use instead of tokens.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;

use evenkeel_core::Timestamp;
use evenkeel_store::{ApiKey, Role};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// An API key without its secret, which is shown only when the key is created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    /// Id of the key.
    pub id: Uuid,
    /// Name of the key. The audit log shows requests made with this key under the subject `key:`
    /// plus its name.
    pub name: String,
    /// Role of the key: `viewer`, `operator` or `admin`.
    #[schema(value_type = String, example = "operator")]
    pub role: Role,
    /// Subject that created the key.
    pub created_by: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Expiry time of the key; null if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// Time of the revocation.
    pub revoked_at: Option<Timestamp>,
    /// Time when the key was last used, accurate to about one minute.
    pub last_used_at: Option<Timestamp>,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            role: key.role,
            created_by: key.created_by,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}
