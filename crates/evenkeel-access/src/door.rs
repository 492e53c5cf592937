//! Tells from a credential who somebody is.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{ApiKey, KeyHash, Role, Scope, Store, StoreError};
use uuid::Uuid;

use crate::foreign::ForeignTokens;
use crate::keys::{KEY_PREFIX, hash_of};
use crate::tenants::Tenants;
use crate::tokens::{TokenRefusal, Tokens};

/// Who somebody is, by a credential that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The tenant's name.
    pub tenant: String,
    /// What they may do.
    pub role: Role,
    /// Who.
    pub subject: String,
    /// Until when the credential is good.
    pub expires_at: Option<Timestamp>,
    /// The API key, if it is one.
    pub key: Option<KeyHash>,
    /// The tenant's number, if it is known already.
    pub(crate) number: Option<TenantNo>,
}

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The token is worth nothing.
    #[error(transparent)]
    Token(#[from] TokenRefusal),
    /// There is no such key.
    #[error("the API key is not known")]
    UnknownKey,
    /// It was taken back.
    #[error("the API key was revoked")]
    RevokedKey,
    /// Its time is over.
    #[error("the API key has expired")]
    ExpiredKey,
    /// Only the identity provider's tokens and API keys are taken.
    #[error(
        "tokens of this server's own are not taken; show one of the identity provider's, or an API key"
    )]
    LocalToken,
    /// Not a matter of the credential.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Whose tokens are believed. API keys always are.
#[derive(Default)]
pub struct Trust {
    /// Those made with the store's secret, from anywhere.
    pub local: Option<Arc<Tokens>>,
    /// Those made with a secret of this process, which only its data directory holds: from this
    /// machine.
    pub machine: Option<Arc<Tokens>>,
    /// Those of an identity provider.
    pub foreign: Option<Arc<ForeignTokens>>,
}

/// Tells from a credential who somebody is.
pub struct Door {
    store: Arc<dyn Store>,
    trust: Trust,
    tenants: Tenants,
    /// Keys that were used since somebody last wrote that down.
    used: Mutex<HashSet<Uuid>>,
}

impl Door {
    /// A door to `store`.
    pub fn new(store: Arc<dyn Store>, trust: Trust) -> Self {
        Self { tenants: Tenants::new(Arc::clone(&store)), store, trust, used: Mutex::default() }
    }

    /// Who shows `credential` at `now`, from the address `from`, and where they may do what.
    pub async fn identify(
        &self,
        credential: &str,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(Identity, Scope), Refusal> {
        let identity = if credential.starts_with(KEY_PREFIX) {
            self.bearer_of_key(credential, now).await?
        } else {
            self.bearer_of_token(credential, from, now)?
        };
        let tenant = match identity.number {
            Some(number) => number,
            None => self.tenants.number(&identity.tenant).await?,
        };
        let scope = Scope { tenant, role: identity.role };
        Ok((identity, scope))
    }

    /// The store is asked each time: a key that was taken back opens nothing from then on, on any
    /// node.
    async fn bearer_of_key(&self, key: &str, now: Timestamp) -> Result<Identity, Refusal> {
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

    /// Is an API key that was let in before still good at `now`?
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

    /// Each maker of tokens has one algorithm and keys for no other; which one is asked makes no
    /// forged token good.
    fn bearer_of_token(
        &self,
        token: &str,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<Identity, Refusal> {
        let Trust { local, machine, foreign } = &self.trust;
        if let Some(foreign) = foreign
            && names_algorithm(token, foreign)
        {
            return Ok(foreign.verify(token, now)?);
        }
        let is_here = from.is_some_and(|from| from.to_canonical().is_loopback());
        let own = local.iter().chain(machine.iter().filter(|_| is_here));
        let mut refusal = None;
        for tokens in own {
            match tokens.verify(token, now) {
                Ok(claims) => return Ok(identity_of(claims)),
                Err(why @ TokenRefusal::Foreign(_)) => refusal = refusal.or(Some(why)),
                // Its signature is good, so no other maker need be asked.
                Err(why) => return Err(why.into()),
            }
        }
        Err(match (refusal, jsonwebtoken::decode_header(token)) {
            (Some(why), _) => why.into(),
            (None, Err(why)) => TokenRefusal::Foreign(why).into(),
            (None, Ok(_)) => Refusal::LocalToken,
        })
    }

    /// The keys that were used since this was last asked.
    pub(crate) fn take_used(&self) -> Vec<Uuid> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.drain().collect()
    }

    /// The number of a tenant.
    pub async fn tenant(&self, name: &str) -> Result<TenantNo, StoreError> {
        self.tenants.number(name).await
    }
}

fn names_algorithm(token: &str, foreign: &ForeignTokens) -> bool {
    let header = jsonwebtoken::decode_header(token);
    header.is_ok_and(|header| header.alg == foreign.algorithm().algorithm())
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
