//! `/api/v1/api-keys…`: keys for programs.

mod create;
mod list;
mod revoke;

use evenkeel_core::Timestamp;
use evenkeel_store::{ApiKey, Role};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use create::*;
pub(crate) use list::*;
pub(crate) use revoke::*;

/// An API key without the secret, which is shown only once, on creation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    /// Id of the key.
    pub id: Uuid,
    /// Name of the key. The audit log shows its actions as `key:` and this name.
    pub name: String,
    /// Role of the key: `viewer`, `operator` or `admin`.
    #[schema(value_type = String, example = "operator")]
    pub role: Role,
    /// Subject that created the key.
    pub created_by: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Expiry time; null if it does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Time of the revocation.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// Time of the last use, accurate to about a minute.
    #[schema(value_type = Option<String>, format = DateTime)]
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
