//! Verifies tokens of an external identity provider.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Map, Value};

use crate::authenticator::Identity;
use crate::ring_provider::use_ring;
use crate::tokens::{LEEWAY_SECS, TOKEN_BYTES_MAX, TokenRefusal, is_name, seconds};

/// Minimum length of an RSA modulus in bytes; shorter keys can be factored.
const RSA_BYTES_MIN: usize = 256;

/// The signature algorithm of an external identity provider. A token whose header names another
/// algorithm is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ExternalAlgorithm {
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    EdDsa,
}

impl ExternalAlgorithm {
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// Returns the registered JOSE name of the algorithm, such as `RS256`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(crate) const fn algorithm(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::RS256,
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }

    const fn key_algorithm(self) -> KeyAlgorithm {
        match self {
            Self::Rs256 => KeyAlgorithm::RS256,
            Self::Es256 => KeyAlgorithm::ES256,
            Self::EdDsa => KeyAlgorithm::EdDSA,
        }
    }
}

/// Claims that tokens of an external identity provider must contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExternalSettings {
    pub algorithm: ExternalAlgorithm,
    /// The token must name one of these audiences. If the list of audiences is empty, the token's
    /// audience is not checked.
    pub audience: Vec<String>,
    /// `None`: not checked.
    pub issuer: Option<String>,
    /// Name of the token's claim that contains the role, or a path of claim names separated by
    /// dots.
    pub role_claim: String,
    pub tenant_claim: String,
}

/// Why the public keys of an identity provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    #[error("it is not a public key for {0} in PEM")]
    NotPem(&'static str),
    #[error("it holds a private key; give the public one, and keep the other where it was made")]
    Private,
    #[error(
        "its key {0} is a private one (it has \"d\"); give the public one, and keep the other where \
         it was made"
    )]
    PrivateInSet(String),
    #[error("its RSA key has less than 2048 bits")]
    Short,
    #[error("it is not a JSON Web Key Set: {0}")]
    NotJwks(#[source] serde_json::Error),
    #[error("it has no public key for {0}")]
    NoneFits(&'static str),
    #[error("one of its keys for {0} has no kid, by which tokens name it; add one")]
    Nameless(&'static str),
}

/// The public keys of an identity provider.
pub enum ExternalKeys {
    /// The keys of a JSON Web Key Set by their ids. A token must name its key even if the set has
    /// only one key. So the error for a token signed with an outdated key says that the key is
    /// unknown.
    Named(BTreeMap<String, DecodingKey>),
    /// The key from a PEM file, which has no key id.
    Single(Box<DecodingKey>),
}

impl ExternalKeys {
    pub fn from_pem(algorithm: ExternalAlgorithm, pem: &[u8]) -> Result<Self, KeyFault> {
        let bad = KeyFault::NotPem(algorithm.as_str());
        let text = std::str::from_utf8(pem).map_err(|_| KeyFault::NotPem(algorithm.as_str()))?;
        if text.contains("PRIVATE KEY-----") {
            return Err(KeyFault::Private);
        }
        let key = match algorithm {
            ExternalAlgorithm::Rs256 => DecodingKey::from_rsa_pem(pem),
            ExternalAlgorithm::Es256 => DecodingKey::from_ec_pem(pem),
            ExternalAlgorithm::EdDsa => DecodingKey::from_ed_pem(pem),
        };
        let key = key.map_err(|_| bad)?;
        if algorithm == ExternalAlgorithm::Rs256 {
            let body: String =
                text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
            // An encoded RSA key contains the modulus, so the modulus is too short if the whole
            // encoded key is shorter than the minimum.
            if STANDARD.decode(body).is_ok_and(|der| der.len() < RSA_BYTES_MIN) {
                return Err(KeyFault::Short);
            }
        }
        Ok(Self::Single(Box::new(key)))
    }

    /// Reads the keys of a JSON Web Key Set that fit the signature algorithm, and ignores all other
    /// keys.
    pub fn from_jwks(algorithm: ExternalAlgorithm, text: &[u8]) -> Result<Self, KeyFault> {
        refuse_private(text)?;
        let set: JwkSet = serde_json::from_slice(text).map_err(KeyFault::NotJwks)?;
        let fitting: Vec<&Jwk> = set.keys.iter().filter(|key| fits(algorithm, key)).collect();
        let mut named = BTreeMap::new();
        for jwk in &fitting {
            if let AlgorithmParameters::RSA(rsa) = &jwk.algorithm
                && URL_SAFE_NO_PAD.decode(&rsa.n).is_ok_and(|n| n.len() < RSA_BYTES_MIN)
            {
                return Err(KeyFault::Short);
            }
            let key =
                DecodingKey::from_jwk(jwk).map_err(|_| KeyFault::NoneFits(algorithm.as_str()))?;
            let id = jwk.common.key_id.clone();
            let id = id.ok_or_else(|| KeyFault::Nameless(algorithm.as_str()))?;
            named.insert(id, key);
        }
        if named.is_empty() {
            return Err(KeyFault::NoneFits(algorithm.as_str()));
        }
        Ok(Self::Named(named))
    }

    /// Returns the public key whose id is in the token's header.
    fn find(&self, id: Option<&str>) -> Option<&DecodingKey> {
        match self {
            Self::Named(keys) => keys.get(id?),
            Self::Single(key) => Some(key),
        }
    }
}

/// Refuses a key set that contains a private key. A JSON Web Key Set is public, so a private key in
/// the set is a mistake, even if the private key is for another signature algorithm.
fn refuse_private(text: &[u8]) -> Result<(), KeyFault> {
    let set: Value = serde_json::from_slice(text).map_err(KeyFault::NotJwks)?;
    for (place, jwk) in set["keys"].as_array().into_iter().flatten().enumerate() {
        // In the JSON of an RSA, elliptic-curve or Edwards-curve key, the field `d` contains the
        // private part.
        if jwk.get("d").is_some() {
            let id = jwk.get("kid").and_then(Value::as_str).map(|id| format!("{id:?}"));
            let key = id.unwrap_or_else(|| format!("number {}", place + 1));
            return Err(KeyFault::PrivateInSet(key));
        }
    }
    Ok(())
}

fn fits(algorithm: ExternalAlgorithm, jwk: &Jwk) -> bool {
    let shape = match (&jwk.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), ExternalAlgorithm::Rs256) => true,
        (AlgorithmParameters::EllipticCurve(key), ExternalAlgorithm::Es256) => {
            key.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::OctetKeyPair(key), ExternalAlgorithm::EdDsa) => {
            key.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    let is_for_signing =
        jwk.common.public_key_use.as_ref().is_none_or(|what| *what == PublicKeyUse::Signature);
    let named = jwk.common.key_algorithm.is_none_or(|own| own == algorithm.key_algorithm());
    shape && is_for_signing && named
}

pub struct ExternalTokens {
    settings: ExternalSettings,
    keys: RwLock<Arc<ExternalKeys>>,
    validation: Validation,
}

impl ExternalTokens {
    pub fn new(settings: ExternalSettings, keys: ExternalKeys) -> Self {
        use_ring();
        let mut validation = Validation::new(settings.algorithm.algorithm());
        // The token library would compare the expiry time with the system clock; `verify` compares
        // it with its parameter `now` instead. The errors of `check_claims` name the wrong claim.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        Self { settings, keys: RwLock::new(Arc::new(keys)), validation }
    }

    pub fn algorithm(&self) -> ExternalAlgorithm {
        self.settings.algorithm
    }

    pub fn replace_keys(&self, keys: ExternalKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Returns the identity in a token that is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Identity, TokenRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let header = jsonwebtoken::decode_header(token).map_err(TokenRefusal::Invalid)?;
        if header.crit.is_some() {
            return Err(TokenRefusal::Critical);
        }
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        // Keys inside the token, and URLs of keys, are never trusted.
        let key = keys.find(header.kid.as_deref()).ok_or(TokenRefusal::UnknownKey)?;
        let claims = jsonwebtoken::decode::<Map<String, Value>>(token, key, &self.validation)
            .map_err(TokenRefusal::Invalid)?
            .claims;
        let expires_at = self.check_claims(&claims, seconds(now))?;
        self.identity(&claims, expires_at)
    }

    /// Checks the validity period, the issuer and the audience of a token. Returns the expiry time
    /// of the token.
    fn check_claims(
        &self,
        claims: &Map<String, Value>,
        now: u64,
    ) -> Result<Timestamp, TokenRefusal> {
        let moment = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|secs| (0.0..1e12).contains(secs)) {
                Some(secs) => Ok(Some(secs as u64)),
                None => Err(fault(name, "is not a time")),
            },
        };
        let expiry = moment("exp")?.ok_or_else(|| fault("exp", "is missing"))?;
        if now >= expiry {
            return Err(TokenRefusal::Expired);
        }
        for name in ["nbf", "iat"] {
            if moment(name)?.is_some_and(|from| from > now + LEEWAY_SECS) {
                return Err(TokenRefusal::Early);
            }
        }
        if let Some(issuer) = &self.settings.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(fault("iss", "is not the issuer this server trusts"));
        }
        let audience = &self.settings.audience;
        let is_meant = |name: &Value| {
            name.as_str().is_some_and(|name| audience.iter().any(|wanted| wanted == name))
        };
        let for_us = match claims.get("aud") {
            Some(Value::Array(names)) => names.iter().any(is_meant),
            Some(name) => is_meant(name),
            None => false,
        };
        if !audience.is_empty() && !for_us {
            return Err(fault("aud", "does not name this server"));
        }
        let micros =
            expiry.saturating_mul(1_000_000).min(Timestamp::MAX.as_micros().cast_unsigned());
        Ok(Timestamp::from_micros(micros.cast_signed()))
    }

    fn identity(
        &self,
        claims: &Map<String, Value>,
        expires_at: Timestamp,
    ) -> Result<Identity, TokenRefusal> {
        let ExternalSettings { role_claim, tenant_claim, .. } = &self.settings;
        let role = find(claims, role_claim).ok_or_else(|| fault(role_claim, "is missing"))?;
        let role = role_of(role)
            .ok_or_else(|| fault(role_claim, "is not a role: viewer, operator or admin"))?;
        let name = |claim: &str| {
            let value = find(claims, claim).ok_or_else(|| fault(claim, "is missing"))?;
            let name = value.as_str().filter(|name| is_name(name));
            name.map(String::from).ok_or_else(|| fault(claim, "is not a name"))
        };
        let (subject, tenant) = (name("sub")?, name(tenant_claim)?);
        Ok(Identity {
            tenant,
            role,
            subject,
            expires_at: Some(expires_at),
            key: None,
            number: None,
        })
    }
}

fn fault(claim: &str, message: &'static str) -> TokenRefusal {
    TokenRefusal::Claim { claim: claim.into(), message }
}

/// Finds a claim by its name, which may contain dots, or by a path of claim names separated by
/// dots.
fn find<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut names = path.split('.');
    let mut value = claims.get(names.next()?)?;
    for name in names {
        value = value.get(name)?;
    }
    Some(value)
}

/// Returns the role in a claim. If the claim is a list of names, returns the highest role in the
/// list.
fn role_of(value: &Value) -> Option<Role> {
    let named = |text: &str| Role::ALL.into_iter().find(|role| role.as_str() == text);
    match value {
        Value::String(text) => named(text),
        Value::Array(items) => items.iter().filter_map(Value::as_str).filter_map(named).max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
