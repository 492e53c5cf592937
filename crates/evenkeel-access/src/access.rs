//! Combines authentication, rate limits and the audit log of a server, and their periodic upkeep.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{AuditEntry, NewApiKey, Now, Role, Scope, Store, StoreError};
use uuid::Uuid;

use crate::audit::AuditLog;
use crate::authenticator::{Authenticator, Trust};
use crate::keys::ApiKeySecret;
use crate::limiter::{Limiter, Verdict};

/// Maximum number of audit log entries that one transaction deletes.
const FORGOTTEN_AT_ONCE: u32 = 1000;

/// Metric: number of refused credentials from blocked addresses.
const LIMITED: &str = "evenkeel_login_limited_total";

/// The answer to a refused credential from a blocked address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooManyFailures {
    /// Time until the block ends, at least one second.
    pub retry_after_secs: u64,
    pub detail: String,
}

impl TooManyFailures {
    /// HTTP status of the answer.
    const STATUS: u16 = 429;

    fn new(wait: Span) -> Self {
        let secs = wait.as_micros().div_ceil(1_000_000).max(1);
        let detail = format!(
            "too many invalid credentials from this address; valid ones are still accepted, others \
             are not checked for {secs} s"
        );
        Self { retry_after_secs: secs, detail }
    }
}

pub struct Access {
    pub authenticator: Authenticator,
    pub limiter: Limiter,
    /// Limits the audit log entries for requests without a credential, so that such requests cannot
    /// fill the audit log.
    pub anonymous: Limiter,
    pub audit: AuditLog,
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
}

impl Access {
    /// Call `new` inside a Tokio runtime, because it starts the task that writes the audit log.
    pub fn new(store: Arc<dyn Store>, trust: Trust, chance: Arc<dyn Chance>) -> Self {
        Self {
            authenticator: Authenticator::new(Arc::clone(&store), trust),
            limiter: Limiter::default(),
            anonymous: Limiter::default(),
            audit: AuditLog::start(Arc::clone(&store)),
            store,
            chance,
        }
    }

    /// Generates an id for a request that arrived without one.
    pub fn request_id(&self, now: Timestamp) -> String {
        JobId::new(now, self.chance.ten_bytes()).to_string()
    }

    /// Counts a refused credential from an IP address, and records its audit entry. Returns the
    /// answer for a blocked address. While an address is blocked, only the first refusal is in the
    /// audit log, so that endless failures cannot fill it.
    pub fn count_refusal(
        &self,
        from: Option<IpAddr>,
        mut entry: AuditEntry,
    ) -> Option<TooManyFailures> {
        let verdict = from.map_or(Verdict::Counted, |from| self.limiter.failed(from, entry.at));
        let (wait, is_first) = match verdict {
            Verdict::Counted => {
                self.audit.record_refusal(entry);
                return None;
            }
            Verdict::BlockedNow(wait) => (wait, true),
            Verdict::Blocked(wait) => (wait, false),
        };
        metrics::counter!(LIMITED).increment(1);
        let limited = TooManyFailures::new(wait);
        if is_first {
            entry.status = TooManyFailures::STATUS;
            entry.detail = Some(limited.detail.clone());
            self.audit.record_refusal(entry);
        }
        Some(limited)
    }

    /// Creates an API key. Returns the id and the secret of the API key; the store has only its
    /// hash. Returns `None` if another API key of the tenant already has this name.
    pub async fn create_key(
        &self,
        scope: &Scope,
        name: String,
        role: Role,
        expires_at: Option<Timestamp>,
        created_by: &str,
    ) -> Result<Option<(Uuid, ApiKeySecret)>, StoreError> {
        let now = self.store.now().await?;
        let secret = ApiKeySecret::draw(&*self.chance);
        let id = JobId::new(now, self.chance.ten_bytes()).0;
        let created_by = created_by.to_owned();
        let key = NewApiKey { id, name, role, hash: secret.hash(), created_by, expires_at };
        let made = self.store.create_key(scope, key, Now::At(now)).await?;
        Ok(made.then_some((id, secret)))
    }
}

/// Periodic upkeep: saves when API keys were last used, and deletes old audit log entries.
pub struct Upkeep {
    access: Arc<Access>,
    kept_for: Span,
}

impl Upkeep {
    const EVERY: Duration = Duration::from_secs(60);

    /// Audit log entries older than `kept_for` are deleted.
    pub fn new(access: Arc<Access>, kept_for: Span) -> Self {
        Self { access, kept_for }
    }

    /// Saves the last use of API keys, and deletes a limited number of old audit log entries.
    /// Returns true if more old audit log entries are left.
    pub async fn run_once(&self, now: Timestamp) -> Result<bool, StoreError> {
        let store = &self.access.store;
        let used = self.access.authenticator.take_used();
        if !used.is_empty() {
            store.use_keys(&used, now).await?;
        }
        let before = now.saturating_sub(self.kept_for);
        Ok(store.prune_audit(before, FORGOTTEN_AT_ONCE).await? == u64::from(FORGOTTEN_AT_ONCE))
    }

    /// Calls `run_once` every minute, and again at once while old audit log entries are left.
    pub async fn run(self, clock: impl Fn() -> Timestamp + Send) {
        loop {
            let has_more = self.run_once(clock()).await.unwrap_or_else(|error| {
                let source = &error as &dyn std::error::Error;
                tracing::warn!(
                    error = source,
                    "saving the last use of API keys or deleting old audit entries failed; will retry"
                );
                false
            });
            if !has_more {
                tokio::time::sleep(Self::EVERY).await;
            }
        }
    }
}
