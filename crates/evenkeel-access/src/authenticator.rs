//! Authenticates a request by its credential: a token or an API key.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{ApiKey, KeyHash, Role, Scope, Store, StoreError};
use uuid::Uuid;

use crate::external::ExternalTokens;
use crate::keys::{KEY_PREFIX, hash_of};
use crate::tenants::Tenants;
use crate::tokens::{TokenRefusal, Tokens};

/// The sender of a request, as stated by a verified credential.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    pub tenant: String,
    pub role: Role,
    pub subject: String,
    pub expires_at: Option<Timestamp>,
    /// Hash of the API key, if the credential is an API key.
    pub key: Option<KeyHash>,
    /// Number of the sender's tenant; `None` if only the tenant's name is known.
    pub(crate) number: Option<TenantNo>,
}

/// Why a credential is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Token(#[from] TokenRefusal),
    #[error("the API key is unknown")]
    UnknownKey,
    #[error("the API key was revoked")]
    RevokedKey,
    #[error("the API key has expired")]
    ExpiredKey,
    /// The server does not accept its own tokens, only API keys and external tokens.
    #[error(
        "this server does not accept its own tokens; use a token of the identity provider or an API \
         key"
    )]
    LocalToken,
    /// The store failed, so the credential could not be checked.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// The token issuers that the server trusts. The server always accepts API keys, whatever issuers
/// it trusts.
#[derive(Default)]
pub struct Trust {
    /// Verifies tokens signed with the secret in the store.
    pub local: Option<Arc<Tokens>>,
    /// Verifies tokens signed with a secret that this server process chose at random when it
    /// started. Such tokens are accepted only from this machine.
    pub machine: Option<Arc<Tokens>>,
    /// Verifies tokens of an external identity provider.
    pub external: Option<Arc<ExternalTokens>>,
}

pub struct Authenticator {
    store: Arc<dyn Store>,
    trust: Trust,
    tenants: Tenants,
    /// Ids of the API keys that were used since the last call of `take_used`.
    used: Mutex<HashSet<Uuid>>,
}

impl Authenticator {
    pub fn new(store: Arc<dyn Store>, trust: Trust) -> Self {
        Self { tenants: Tenants::new(Arc::clone(&store)), store, trust, used: Mutex::default() }
    }

    /// Returns the identity that the credential of a request proves. The request arrived from the
    /// IP address `from` at `now`.
    pub async fn identify(
        &self,
        credential: &str,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(Identity, Scope), Refusal> {
        let identity = if credential.starts_with(KEY_PREFIX) {
            self.check_api_key(credential, now).await?
        } else {
            self.check_token(credential, from, now)?
        };
        let tenant = match identity.number {
            Some(number) => number,
            None => self.tenants.number(&identity.tenant).await?,
        };
        let scope = Scope { tenant, role: identity.role };
        Ok((identity, scope))
    }

    /// Reads the API key from the store for every request, so that a revoked key stops working on
    /// all nodes at once.
    async fn check_api_key(&self, key: &str, now: Timestamp) -> Result<Identity, Refusal> {
        let hash = hash_of(key).ok_or(Refusal::UnknownKey)?;
        let key = self.find_key(&hash, now).await?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(key.id);
        Ok(Identity {
            tenant: key.tenant_name,
            role: key.role,
            subject: format!("key:{}", key.name),
            expires_at: key.expires_at,
            key: Some(hash),
            number: Some(key.tenant),
        })
    }

    /// Checks that an API key that was already accepted is still valid at `now`.
    pub async fn check_key(&self, key: &KeyHash, now: Timestamp) -> Result<(), Refusal> {
        self.find_key(key, now).await.map(drop)
    }

    async fn find_key(&self, hash: &KeyHash, now: Timestamp) -> Result<ApiKey, Refusal> {
        let key = self.store.find_key(hash).await?.ok_or(Refusal::UnknownKey)?;
        if key.revoked_at.is_some() {
            return Err(Refusal::RevokedKey);
        }
        if key.expires_at.is_some_and(|end| now >= end) {
            return Err(Refusal::ExpiredKey);
        }
        Ok(key)
    }

    /// Each token issuer has one signature algorithm and its own keys, so the order of the checks
    /// cannot make a forged token valid.
    fn check_token(
        &self,
        token: &str,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Identity, Refusal> {
        let Trust { local, machine, external } = &self.trust;
        if let Some(external) = external
            && names_algorithm(token, external)
        {
            return Ok(external.verify(token, now)?);
        }
        let is_here = from.is_some_and(|from| from.to_canonical().is_loopback());
        let own = local.iter().chain(machine.iter().filter(|_| is_here));
        let mut refusal = None;
        for tokens in own {
            match tokens.verify(token, now) {
                Ok(claims) => return Ok(identity_of(claims)),
                Err(why @ TokenRefusal::Invalid(_)) => refusal = refusal.or(Some(why)),
                // The token's signature is valid, so the token is from this issuer and no other
                // issuer is tried.
                Err(why) => return Err(why.into()),
            }
        }
        Err(match (refusal, jsonwebtoken::decode_header(token)) {
            (Some(why), _) => why.into(),
            (None, Err(why)) => TokenRefusal::Invalid(why).into(),
            (None, Ok(_)) => Refusal::LocalToken,
        })
    }

    /// Returns the ids of the API keys that were used since the last call of `take_used`.
    pub(crate) fn take_used(&self) -> Vec<Uuid> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.drain().collect()
    }

    pub async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        self.tenants.number(name).await
    }
}

fn names_algorithm(token: &str, external: &ExternalTokens) -> bool {
    let header = jsonwebtoken::decode_header(token);
    header.is_ok_and(|header| header.alg == external.algorithm().algorithm())
}

fn identity_of(claims: crate::tokens::Claims) -> Identity {
    let micros = i64::try_from(claims.exp).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    let end = Timestamp::from_micros(micros.min(Timestamp::MAX.as_micros()));
    Identity {
        tenant: claims.tenant,
        role: claims.role,
        subject: claims.sub,
        expires_at: Some(end),
        key: None,
        number: None,
    }
}
