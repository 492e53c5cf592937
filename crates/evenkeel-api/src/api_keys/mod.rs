//! Keys for programs.

mod create;
mod list;
mod revoke;

use evenkeel_core::Timestamp;
use evenkeel_store::{ApiKey, Role};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub use create::{ApiKeyDocument, MadeApiKeyView};
pub use list::ApiKeyList;
pub use revoke::RevokedApiKeyView;

pub(crate) use create::*;
pub(crate) use list::*;
pub(crate) use revoke::*;

/// An API key, without itself: that is shown once, when it is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    /// Its id.
    pub id: Uuid,
    /// What people call it. The audit log shows what it does as `key:` and this.
    pub name: String,
    /// What its bearer may do.
    #[schema(value_type = String, example = "operator")]
    pub role: Role,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// From when on it is worth nothing.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute or so.
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
