//! Stores API keys and the audit log.

use evenkeel_core::{TenantNo, Timestamp};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Role, Scope};

/// SHA-256 hash of an API key. The API key itself is never stored.
pub type KeyHash = [u8; 32];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewApiKey {
    pub id: Uuid,
    /// Name of the API key, unique among the tenant's API keys that are not revoked.
    pub name: String,
    pub role: Role,
    pub hash: KeyHash,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    pub id: Uuid,
    pub tenant: TenantNo,
    pub tenant_name: String,
    pub name: String,
    pub role: Role,
    pub created_by: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Time of the last use, accurate to about one minute.
    pub last_used_at: Option<Timestamp>,
}

/// One entry of the audit log: an operation that a caller carried out or was denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// Tenant of the caller; `None` if the caller could not be authenticated.
    pub tenant: Option<TenantNo>,
    /// The caller's identity according to its credentials.
    pub subject: String,
    pub role: Option<Role>,
    pub action: String,
    /// Id or name of the job or other object that the audited operation was about.
    pub target: Option<String>,
    /// HTTP status code of the response.
    pub status: u16,
    /// True if the caller lacked the permission for the operation.
    pub denied: bool,
    /// Free text for operators.
    pub detail: Option<String>,
    /// IP address of the client.
    pub remote: Option<String>,
    pub request_id: String,
}

/// A position in the audit log, which is ordered by time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AuditCursor {
    pub at: Timestamp,
    /// Distinguishes audit entries with the same timestamp.
    pub no: i64,
}

/// Maximum number of audit entries that are read for one page, even if few of them pass the filter.
pub const AUDIT_SCAN_MAX: u32 = 10_000;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    pub subject: Option<String>,
    pub target: Option<String>,
    /// `true` lists only entries of denied operations, `false` only entries of allowed operations.
    pub denied: Option<bool>,
    /// Lists only audit entries at or after this time.
    pub from: Option<Timestamp>,
    /// Lists only audit entries before this time.
    pub before: Option<Timestamp>,
    /// True if the list also contains entries of callers that could not be authenticated.
    pub with_unknown: bool,
}

impl AuditFilter {
    /// Returns true if the audit entry passes the filter; the tenant of the entry is not checked.
    pub fn passes(&self, entry: &AuditEntry) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == entry.subject)
            && self.target.as_ref().is_none_or(|target| entry.target.as_ref() == Some(target))
            && self.denied.is_none_or(|denied| denied == entry.denied)
            && self.from.is_none_or(|from| entry.at >= from)
            && self.before.is_none_or(|before| entry.at < before)
    }

    /// Returns the position in the audit log at which a page starts; older entries follow.
    pub fn start(&self, after: Option<AuditCursor>) -> AuditCursor {
        let end = self.before.unwrap_or(Timestamp::MAX);
        let bound = AuditCursor { at: end, no: i64::MIN };
        after.map_or(bound, |after| after.min(bound))
    }
}

verbs! {
    trait AccessStore {}

    /// Creates an API key. Returns false if another API key of the tenant already has this name.
    /// The name of a revoked API key can be reused; the name of an expired key cannot.
    write fn create_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;

    /// Returns the API key with this hash, whatever its tenant and even if it is revoked or
    /// expired.
    read fn find_key(hash: &KeyHash) -> Option<ApiKey>;

    /// Updates [`ApiKey::last_used_at`] of API keys. A time before the stored time of last use is
    /// ignored.
    write fn use_keys(ids: &[Uuid], at: Timestamp) -> ();

    /// Revokes an API key permanently. Returns false if the API key does not exist or is already
    /// revoked.
    write fn revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;

    /// Returns the tenant's API keys ordered by id, including revoked keys. Ids of API keys begin
    /// with a timestamp, so the order by id is the order of creation.
    read fn list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;

    /// Appends entries to the audit log.
    write fn record_audit(entries: Vec<AuditEntry>) -> ();

    /// Returns the tenant's audit entries, newest first. At most [`AUDIT_SCAN_MAX`] audit entries
    /// are read for one page, so a page can have fewer entries than requested although a next page
    /// exists. The total number of audit entries is counted up to [`AUDIT_SCAN_MAX`] and is an
    /// estimate beyond that.
    read fn list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditCursor>)
        -> Page<(AuditCursor, AuditEntry), AuditCursor>;

    /// Deletes up to `limit` audit entries older than `before`, oldest first. Returns the number of
    /// deleted entries.
    write fn prune_audit(before: Timestamp, limit: u32) -> u64;
}
