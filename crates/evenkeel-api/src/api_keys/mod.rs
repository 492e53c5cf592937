//! `/api/v1/api-keys…`: API keys that programs use instead of tokens.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod revoke;

use evenkeel_core::Timestamp;
use evenkeel_store::{ApiKey, Role};
use uuid::Uuid;

use crate::view::view;

view! {
    /// An API key without its secret, which is shown only when the key is created.
    ApiKeyView::new(key: ApiKey) {}

    /// Id of the key.
    id: Uuid = key.id,
    /// Name of the key. The audit log shows requests made with this key under the subject `key:`
    /// plus its name.
    name: String = key.name,
    /// Role of the key: `viewer`, `operator` or `admin`.
    #[schema(value_type = String, example = "operator")]
    role: Role = key.role,
    /// Subject that created the key.
    created_by: String = key.created_by,
    /// Creation time.
    created_at: Timestamp = key.created_at,
    /// Expiry time of the key; null if it does not expire.
    expires_at: Option<Timestamp> = key.expires_at,
    /// Time of the revocation.
    revoked_at: Option<Timestamp> = key.revoked_at,
    /// Time when the key was last used, accurate to about one minute.
    last_used_at: Option<Timestamp> = key.last_used_at,
}
