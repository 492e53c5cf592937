//! Determines which tokens the server accepts, and reloads certificates and keys on SIGHUP.

use std::sync::Arc;

use evenkeel_access::{ExternalKeys, ExternalTokens, Tokens, Trust};
use evenkeel_core::chance::Chance;
use evenkeel_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use super::credentials;
use super::tls::Tls;
use crate::config::{AccessConfig, KeyFile, ProviderConfig};
use crate::failure::Because as _;
use crate::{Failure, Result};

pub struct Trusted {
    pub trust: Trust,
    /// Signs the token that the server writes to its data directory.
    pub local: Arc<Tokens>,
    /// Verifies tokens of the identity provider, whose keys can be reloaded.
    pub external: Option<Arc<ExternalTokens>>,
}

/// Determines the trusted tokens. The server always accepts the token in its data directory. If the
/// server refuses tokens signed with the store's secret, it signs the token in the data directory
/// with a secret of its own and accepts that token only from this machine.
pub async fn trusted(
    config: &AccessConfig,
    store: &dyn Store,
    chance: &dyn Chance,
) -> Result<Trusted> {
    let stored = Arc::new(credentials::tokens(store, chance).await?);
    let Some(provider) = &config.provider else {
        let trust = Trust { local: Some(Arc::clone(&stored)), ..Trust::default() };
        return Ok(Trusted { trust, local: stored, external: None });
    };
    if provider.settings.audience.is_empty() {
        tracing::warn!(
            "tokens that the identity provider issued for other services are accepted too; set \
             --jwt-audience to accept only tokens for this server"
        );
    }
    let tokens = ExternalTokens::new(provider.settings.clone(), read_keys(provider)?);
    let external = Some(Arc::new(tokens));
    let mut trust = Trust { external: external.clone(), ..Trust::default() };
    let local = if provider.with_local {
        trust.local = Some(Arc::clone(&stored));
        stored
    } else {
        let secret: Vec<u8> = (0..4).flat_map(|_| chance.bits().to_le_bytes()).collect();
        let own = Arc::new(Tokens::new(&secret).because("can't create the local token")?);
        trust.machine = Some(Arc::clone(&own));
        own
    };
    Ok(Trusted { trust, local, external })
}

fn read_keys(provider: &ProviderConfig) -> Result<ExternalKeys> {
    let algorithm = provider.settings.algorithm;
    let (KeyFile::Pem(path) | KeyFile::Jwks(path)) = &provider.keys;
    let failed = |what: &str, error: &dyn std::error::Error| {
        Failure::usage(format!("{} can't be {what}: {error}", path.display()))
            .or_else("give the file with the identity provider's public key")
    };
    let text = std::fs::read(path).map_err(|error| failed("read", &error))?;
    let keys = match &provider.keys {
        KeyFile::Pem(_) => ExternalKeys::from_pem(algorithm, &text),
        KeyFile::Jwks(_) => ExternalKeys::from_jwks(algorithm, &text),
    };
    keys.map_err(|fault| failed("used", &fault))
}

/// Writes `server.json`: the server's address and certificate fingerprint, for local commands.
pub type Announce = Arc<dyn Fn() -> Result + Send + Sync>;

/// Reloads the certificate and the identity provider's keys on SIGHUP.
pub struct Reload {
    pub tls: Option<Arc<Tls>>,
    pub provider: Option<(ProviderConfig, Arc<ExternalTokens>)>,
    /// Function to call after the TLS certificate has changed.
    pub announce: Announce,
}

impl Reload {
    /// Reloads on every SIGHUP. Without TLS and without an identity provider, SIGHUP is not handled
    /// and so ends the process.
    pub fn listen(self) -> Result {
        if self.tls.is_none() && self.provider.is_none() {
            return Ok(());
        }
        let mut hangup = signal(SignalKind::hangup()).because("can't listen for signals")?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                match self.once() {
                    Ok(()) => tracing::info!("certificate and keys reloaded"),
                    Err(failure) => {
                        tracing::error!(
                            error = failure.what,
                            "reload failed; the former certificate and keys stay in use"
                        );
                    }
                }
            }
        });
        Ok(())
    }

    fn once(&self) -> Result {
        // The identity provider's keys are read before the certificate is replaced, so that an
        // invalid key file changes nothing.
        let keys = self.provider.as_ref().map(|(config, _)| read_keys(config)).transpose()?;
        if let Some(tls) = &self.tls {
            tls.reload()?;
            (self.announce)()?;
        }
        if let (Some(keys), Some((_, tokens))) = (keys, &self.provider) {
            tokens.replace_keys(keys);
        }
        Ok(())
    }
}
