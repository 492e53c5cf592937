//! Creates tokens, and keeps a valid token in the data directory for local commands.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_access::{DEFAULT_TENANT, SECRET_BYTES_MIN, TokenRequest, Tokens};
use evenkeel_core::chance::Chance;
use evenkeel_core::{AttemptTokens, RunIds, Span, Timestamp};
use evenkeel_engine::Clock;
use evenkeel_store::{Role, Store};

use super::data_dir::DataDir;
use crate::Result;
use crate::failure::Because as _;

/// Lifetime of the local token.
const LIFETIME: Span = Span::from_secs(12 * 3600);

/// The server renews the local token when its remaining lifetime is shorter than this time.
const RENEW_AT: Span = Span::from_secs(6 * 3600);

/// Returns the signer of API tokens. All nodes share one signing secret, which is created once and
/// kept in the store.
pub async fn tokens(store: &dyn Store, chance: &dyn Chance) -> Result<Tokens> {
    let secret = secret(store, "token_secret", chance).await?;
    debug_assert!(secret.len() >= SECRET_BYTES_MIN);
    Tokens::new(secret.as_bytes()).because("the store's secret can't be used")
}

/// Returns the signer of the tokens with which receivers of HTTP calls report results. All nodes of
/// a cluster accept a receiver's token.
pub async fn attempt_tokens(store: &dyn Store, chance: &dyn Chance) -> Result<AttemptTokens> {
    let secret = secret(store, "attempt_secret", chance).await?;
    Ok(AttemptTokens::new(secret.as_bytes()))
}

/// Returns the codec of run and attempt ids. The key of the codec never changes, because ids that
/// clients have saved would become invalid with another key.
pub async fn run_ids(store: &dyn Store, chance: &dyn Chance) -> Result<RunIds> {
    let secret = secret(store, "run_id_secret", chance).await?;
    Ok(RunIds::new(secret.as_bytes()))
}

/// Returns the secret from which the keys of the dashboard's session cookies are derived.
pub async fn session_secret(store: &dyn Store, chance: &dyn Chance) -> Result<String> {
    secret(store, "session_secret", chance).await
}

/// Returns the secrets from which the keys for signing HTTP calls are derived: the configured
/// secrets, or else the secret in the store.
pub async fn signing_secrets(
    configured: &[String],
    store: &dyn Store,
    chance: &dyn Chance,
) -> Result<Vec<String>> {
    if configured.is_empty() {
        Ok(vec![secret(store, "signing_secret", chance).await?])
    } else {
        Ok(configured.to_vec())
    }
}

/// Returns the secret that the store keeps under `key`. The first node creates the secret, and all
/// nodes read the same value.
async fn secret(store: &dyn Store, key: &str, chance: &dyn Chance) -> Result<String> {
    let fresh: String = (0..4).map(|_| format!("{:016x}", chance.bits())).collect();
    store.setting(key, &fresh).await.because("the store's secret can't be read")
}

/// Keeps a valid token in the data directory.
pub struct LocalToken {
    tokens: Arc<Tokens>,
    dir: Arc<DataDir>,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    expires_at: Timestamp,
    text: String,
}

impl LocalToken {
    /// Writes the first token.
    pub fn begin(
        tokens: Arc<Tokens>,
        dir: Arc<DataDir>,
        clock: Arc<dyn Clock>,
        chance: Arc<dyn Chance>,
    ) -> Result<Self> {
        let mut token =
            Self { tokens, dir, clock, chance, expires_at: Timestamp::MIN, text: String::new() };
        token.renew_if_old()?;
        Ok(token)
    }

    /// Returns the current token.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes a new local token if the current token expires soon. Returns true if a new token was
    /// written.
    fn renew_if_old(&mut self) -> Result<bool> {
        let now = self.clock.wall();
        if self.expires_at.since(now) > RENEW_AT {
            return Ok(false);
        }
        let request = TokenRequest {
            role: Role::Admin,
            tenant: DEFAULT_TENANT.into(),
            ttl: LIFETIME,
            now,
            subject: "local".into(),
        };
        let token = self.tokens.issue(&request, &*self.chance);
        let token = token.because("can't create the local token")?;
        self.dir.write("token", &format!("{token}\n"))?;
        self.expires_at = now.saturating_add(LIFETIME);
        self.text = token;
        Ok(true)
    }

    /// Renews the local token until the process ends. Checks the wall clock every 60 s, because the
    /// token may expire while the machine is suspended.
    pub async fn keep(mut self) {
        loop {
            tokio::time::sleep(Duration::from_secs(60)).await;
            if let Err(failure) = self.renew_if_old() {
                tracing::warn!(error = failure.what, "renewing the local token failed; will retry");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use evenkeel_engine::RandomChance;

    use super::*;
    use crate::config::StoreChoice;

    struct SetClock(Mutex<Timestamp>);

    impl Clock for SetClock {
        fn wall(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn local_token_is_renewed_before_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let store = StoreChoice::in_dir(folder.path());
        let dir = Arc::new(DataDir::lock(folder.path(), &store).unwrap());
        let start = Timestamp::from_micros(1_800_000_000_000_000);
        let clock = Arc::new(SetClock(Mutex::new(start)));
        let tokens = Arc::new(Tokens::new(&[7; SECRET_BYTES_MIN]).unwrap());
        let read = || std::fs::read_to_string(folder.path().join("token")).unwrap();
        let chance = Arc::new(RandomChance::from_seed(1));
        let mut local =
            LocalToken::begin(Arc::clone(&tokens), dir, Arc::clone(&clock) as _, chance).unwrap();
        let first = read();
        assert_eq!(tokens.verify(first.trim(), start).unwrap().role, Role::Admin);
        *clock.0.lock().unwrap() = start.saturating_add(Span::from_secs(5 * 3600));
        assert!(!local.renew_if_old().unwrap());
        let later = start.saturating_add(Span::from_secs(7 * 3600));
        *clock.0.lock().unwrap() = later;
        assert!(local.renew_if_old().unwrap());
        assert_ne!(read(), first);
        let end = later.saturating_add(Span::from_secs(11 * 3600));
        assert!(tokens.verify(read().trim(), end).is_ok());
    }
}
