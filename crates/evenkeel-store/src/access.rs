//! Who may come in, and who did what.

use evenkeel_core::{TenantNo, Timestamp};
use uuid::Uuid;

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Role, Scope};

/// The hash of an API key. The key itself is never stored.
pub type KeyHash = [u8; 32];

/// An API key about to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewApiKey {
    /// Its public id.
    pub id: Uuid,
    /// What people call it; unique within its tenant among those that are not revoked.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Its hash.
    pub hash: KeyHash,
    /// Who made it.
    pub created_by: String,
    /// From when on it is worth nothing.
    pub expires_at: Option<Timestamp>,
}

/// An API key as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// Its public id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: TenantNo,
    /// The tenant's name.
    pub tenant_name: String,
    /// What people call it.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is worth nothing.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute or so.
    pub last_used_at: Option<Timestamp>,
}

/// Something that was done, or was not allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Where; `None` if nobody knows who asked.
    pub tenant: Option<TenantNo>,
    /// Who, as their credentials say.
    pub subject: String,
    /// What they may do, if that is known.
    pub role: Option<Role>,
    /// What they asked for: the name of the operation.
    pub action: String,
    /// About what: an id, a name, or nothing.
    pub target: Option<String>,
    /// The status code of the answer.
    pub status: u16,
    /// Was it refused because they may not?
    pub denied: bool,
    /// In words, for people.
    pub detail: Option<String>,
    /// Where the request came from.
    pub remote: Option<String>,
    /// The request's own id.
    pub request_id: String,
}

/// An entry's place in the log, which is in the order of time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AuditCursor {
    /// When it was.
    pub at: Timestamp,
    /// Tells entries of one moment apart.
    pub no: i64,
}

/// Entries that a page looks at, at most, where its filter lets few pass.
pub const AUDIT_SCAN_MAX: u32 = 10_000;

/// Which entries to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuditFilter {
    /// Those of this subject.
    pub subject: Option<String>,
    /// Those about this.
    pub target: Option<String>,
    /// Only refusals, or only what was allowed.
    pub denied: Option<bool>,
    /// Those of this time or later.
    pub from: Option<Timestamp>,
    /// Those from before this time.
    pub before: Option<Timestamp>,
    /// Also those that belong to no tenant.
    pub with_unknown: bool,
}

impl AuditFilter {
    /// Does an entry pass? Whose it is has been asked before.
    pub fn passes(&self, entry: &AuditEntry) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == entry.subject)
            && self.target.as_ref().is_none_or(|target| entry.target.as_ref() == Some(target))
            && self.denied.is_none_or(|denied| denied == entry.denied)
            && self.from.is_none_or(|from| entry.at >= from)
            && self.before.is_none_or(|before| entry.at < before)
    }

    /// The place that all entries of a page come after, which is later than they are.
    pub fn start(&self, after: Option<AuditCursor>) -> AuditCursor {
        let end = self.before.unwrap_or(Timestamp::MAX);
        let bound = AuditCursor { at: end, no: i64::MIN };
        after.map_or(bound, |after| after.min(bound))
    }
}

verbs! {
    /// Keys, and the log of what was done with them.
    trait AccessStore {}

    /// Makes a key; false if its name is taken. One that was taken back has no name any more, one
    /// that has only expired has.
    write fn create_key(scope: &Scope, key: NewApiKey, now: Now) -> bool;

    /// The key with this hash, whosever it is, also if it is worth nothing any more.
    read fn find_key(hash: &KeyHash) -> Option<ApiKey>;

    /// Notes that keys were used. An older use does not hide a newer one.
    write fn use_keys(ids: &[Uuid], at: Timestamp) -> ();

    /// Takes a key back for good; false if there is none, or it was taken back before.
    write fn revoke_key(scope: &Scope, id: Uuid, now: Now) -> bool;

    /// The scope's keys in the order of their ids, which begin with their time; those that were
    /// taken back too.
    read fn list_keys(scope: &Scope, page: PageRequest<Uuid>) -> Page<ApiKey, Uuid>;

    /// Writes down what was done.
    write fn record_audit(entries: Vec<AuditEntry>) -> ();

    /// The scope's entries, newest first. A page looks at [`AUDIT_SCAN_MAX`] entries at most and
    /// may be short although more follow. The total is counted over as many, and says if there are
    /// more.
    read fn list_audit(scope: &Scope, filter: &AuditFilter, page: PageRequest<AuditCursor>)
        -> Page<(AuditCursor, AuditEntry), AuditCursor>;

    /// Forgets up to `limit` entries from before `before`, the oldest ones; says how many.
    write fn prune_audit(before: Timestamp, limit: u32) -> u64;
}
