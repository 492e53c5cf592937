//! The door, those who guard it, and what has to be done from time to time.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::{NewApiKey, Now, Role, Scope, Store, StoreError};
use uuid::Uuid;

use crate::audit::AuditLog;
use crate::door::{Door, Trust};
use crate::keys::Secret;
use crate::limiter::Limiter;

/// Entries that are forgotten in one transaction.
const FORGOTTEN_AT_ONCE: u32 = 1000;

/// All that decides who may come in, and remembers who did.
pub struct Access {
    /// Tells who somebody is.
    pub door: Door,
    /// Slows down those who guess.
    pub limiter: Limiter,
    /// Counts those who come without any credential, so that they can't fill the log.
    pub strangers: Limiter,
    /// What was done.
    pub audit: AuditLog,
    store: Arc<dyn Store>,
    chance: Arc<dyn Chance>,
}

impl Access {
    /// Access to `store` for those whom `trust` believes. Call it inside a runtime.
    pub fn new(store: Arc<dyn Store>, trust: Trust, chance: Arc<dyn Chance>) -> Self {
        Self {
            door: Door::new(Arc::clone(&store), trust),
            limiter: Limiter::default(),
            strangers: Limiter::default(),
            audit: AuditLog::start(Arc::clone(&store)),
            store,
            chance,
        }
    }

    /// A name for a request that has none.
    pub fn request_id(&self, now: Timestamp) -> String {
        JobId::new(now, self.chance.ten_bytes()).to_string()
    }

    /// Makes an API key: its id and itself, which nobody will ever see again; none if the name is
    /// taken.
    pub async fn create_key(
        &self,
        scope: &Scope,
        name: String,
        role: Role,
        expires_at: Option<Timestamp>,
        created_by: &str,
    ) -> Result<Option<(Uuid, Secret)>, StoreError> {
        let now = self.store.now().await?;
        let secret = Secret::draw(&*self.chance);
        let id = JobId::new(now, self.chance.ten_bytes()).0;
        let created_by = created_by.to_owned();
        let key = NewApiKey { id, name, role, hash: secret.hash(), created_by, expires_at };
        let made = self.store.create_key(scope, key, Now::At(now)).await?;
        Ok(made.then_some((id, secret)))
    }
}

/// What has to be done from time to time.
pub struct Upkeep {
    access: Arc<Access>,
    kept_for: Span,
}

impl Upkeep {
    /// How often it is done.
    const EVERY: Duration = Duration::from_secs(60);

    /// Upkeep of `access`, keeping entries of the audit log for so long.
    pub fn new(access: Arc<Access>, kept_for: Span) -> Self {
        Self { access, kept_for }
    }

    /// Writes down which keys were used, and forgets a bounded number of old entries; says whether
    /// there are more.
    pub async fn run_once(&self, now: Timestamp) -> Result<bool, StoreError> {
        let store = &self.access.store;
        let used = self.access.door.take_used();
        if !used.is_empty() {
            store.use_keys(&used, now).await?;
        }
        let before = now.saturating_sub(self.kept_for);
        Ok(store.prune_audit(before, FORGOTTEN_AT_ONCE).await? == u64::from(FORGOTTEN_AT_ONCE))
    }

    /// Does it again and again, by `clock`.
    pub async fn keep(self, clock: impl Fn() -> Timestamp + Send) {
        loop {
            let has_more = self.run_once(clock()).await.unwrap_or_else(|error| {
                let source = &error as &dyn std::error::Error;
                tracing::warn!(error = source, "keys and audit log were not looked after");
                false
            });
            if !has_more {
                tokio::time::sleep(Self::EVERY).await;
            }
        }
    }
}
