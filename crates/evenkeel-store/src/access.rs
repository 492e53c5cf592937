//! API keys and the audit log.

use evenkeel_core::{TenantNo, Timestamp};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Role, Scope};

/// The hash of an API key. The key itself is never stored.
pub type KeyHash = [u8; 32];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewApiKey {
    pub id: Uuid,
    /// Unique within its tenant among keys that are not revoked.
    pub name: String,
    pub role: Role,
    pub hash: KeyHash,
    pub created_by: String,
    /// When the key becomes invalid.
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
    /// When the key becomes invalid.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Accurate to about a minute.
    pub last_used_at: Option<Timestamp>,
}

/// An operation that was carried out or denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// `None` if the caller is unknown.
    pub tenant: Option<TenantNo>,
    /// The caller, according to the credentials.
    pub subject: String,
    pub role: Option<Role>,
    /// The name of the operation.
    pub action: String,
    /// The id or name that the operation was about.
    pub target: Option<String>,
    /// The status code of the response.
    pub status: u16,
    /// The caller lacked the permission.
    pub denied: bool,
    /// A text for operators.
    pub detail: Option<String>,
    /// The address of the client.
    pub remote: Option<String>,
    pub request_id: String,
}

/// A position in the log, which is ordered by time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AuditCursor {
    pub at: Timestamp,
    /// Distinguishes entries of the same moment.
    pub no: i64,
}

/// The number of entries that a page scans at most if few pass the filter.
pub const AUDIT_SCAN_MAX: u32 = 10_000;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    pub subject: Option<String>,
    pub target: Option<String>,
    /// Only denied operations, or only allowed ones.
    pub denied: Option<bool>,
    /// Entries of this time or later.
    pub from: Option<Timestamp>,
    /// Entries before this time.
    pub before: Option<Timestamp>,
    /// Also entries without a tenant.
    pub with_unknown: bool,
}

impl AuditFilter {
    /// Returns true if the entry passes. The tenant is checked elsewhere.
    pub fn passes(&self, entry: &AuditEntry) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == entry.subject)
            && self.target.as_ref().is_none_or(|target| entry.target.as_ref() == Some(target))
            && self.denied.is_none_or(|denied| denied == entry.denied)
            && self.from.is_none_or(|from| entry.at >= from)
            && self.before.is_none_or(|before| entry.at < before)
    }

    /// Returns the position from which the page reads backwards in time.
    pub fn start(&self, after: Option<AuditCursor>) -> AuditCursor {
        let end = self.before.unwrap_or(Timestamp::MAX);
        let bound = AuditCursor { at: end, no: i64::MIN };
        after.map_or(bound, |after| after.min(bound))
    }
}

verbs! {
    trait AccessStore {}

    /// Creates a key. Returns false if the name is taken. A revoked key does not block its name; an
    /// expired one does.
    write fn create_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;

    /// Returns the key with this hash, of any tenant, even if it is revoked or expired.
    read fn find_key(hash: &KeyHash) -> Option<ApiKey>;

    /// Records the use of keys. An earlier use does not replace a later one.
    write fn use_keys(ids: &[Uuid], at: Timestamp) -> ();

    /// Revokes a key for good. Returns false if it does not exist or was revoked before.
    write fn revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;

    /// Returns the scope's keys, also revoked ones, by id. Ids start with their time.
    read fn list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;

    /// Appends entries to the audit log.
    write fn record_audit(entries: Vec<AuditEntry>) -> ();

    /// Returns the scope's entries, newest first. A page scans up to [`AUDIT_SCAN_MAX`] entries and
    /// may be short although more follow. The total is counted over as many entries and is an
    /// estimate if there are more.
    read fn list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditCursor>)
        -> Page<(AuditCursor, AuditEntry), AuditCursor>;

    /// Deletes up to `limit` entries from before `before`, oldest first. Returns their number.
    write fn prune_audit(before: Timestamp, limit: u32) -> u64;
}
