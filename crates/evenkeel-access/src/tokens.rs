//! Tokens that this server issues: JWTs with a subject, a role and a tenant.

use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::Role;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::ring_provider::use_ring;

/// Value of the claim `iss` in tokens that this server issues.
pub const ISSUER: &str = "evenkeel";

/// Minimum length of the signing secret in bytes; a shorter secret would be easier to guess than a
/// signature.
pub const SECRET_BYTES_MIN: usize = 32;

/// Maximum length of a token in bytes; longer tokens are refused.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The only accepted signature algorithm. If the header of a token could choose the signature
/// algorithm, an attacker could choose a weak one.
const ALGORITHM: Algorithm = Algorithm::HS256;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claims {
    pub sub: String,
    pub role: Role,
    pub tenant: String,
    /// Time of issue, in seconds since 1970.
    pub iat: u64,
    /// Expiry time, in seconds since 1970.
    pub exp: u64,
    pub iss: String,
    /// The id of the token.
    pub jti: String,
    /// Time before which the token is not valid, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRequest {
    pub role: Role,
    pub tenant: String,
    pub ttl: Span,
    pub now: Timestamp,
    pub subject: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the secret has {0} bytes, it needs at least {SECRET_BYTES_MIN}")]
    ShortSecret(usize),
    #[error("{0:?} is not a name: 1 to 255 characters without control characters")]
    BadName(String),
    #[error("{0} is not a valid token lifetime: at least 1s, at most 3650d")]
    BadLifetime(Span),
    #[error("the token could not be signed")]
    Unsigned(#[source] jsonwebtoken::errors::Error),
}

/// Why a token is refused.
#[derive(Debug, thiserror::Error)]
pub enum TokenRefusal {
    /// The token is malformed, was signed with another key, or comes from another issuer.
    #[error("the token is not valid for this server")]
    Invalid(#[source] jsonwebtoken::errors::Error),
    #[error("the token is not valid for this server")]
    TooLong,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet; check the clocks of both machines")]
    Early,
    /// A claim is missing or has a wrong value.
    #[error("the token's claim {claim:?} {message}")]
    Claim { claim: String, message: &'static str },
    /// The token's header requires extensions that this server does not support.
    #[error("the token has critical headers that this server does not support")]
    Critical,
    /// The identity provider has no key with the id in the token's header.
    #[error("no key is known for the token")]
    UnknownKey,
}

/// Tolerated difference between this server's clock and the clock of the token's issuer. The
/// tolerance never makes a token valid after its expiry time.
pub(crate) const LEEWAY_SECS: u64 = 60;

/// Issues and verifies tokens of this server.
pub struct Tokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    pub fn new(secret: &[u8]) -> Result<Self, TokenError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(TokenError::ShortSecret(secret.len()));
        }
        use_ring();
        let mut validation = Validation::new(ALGORITHM);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        // The token library would compare the expiry time with the system clock; `verify` compares
        // it with its parameter `now` instead.
        validation.validate_exp = false;
        Ok(Self {
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
            validation,
        })
    }

    pub fn issue(&self, request: &TokenRequest, chance: &dyn Chance) -> Result<String, TokenError> {
        const LONGEST: Span = Span::from_secs(3650 * 86_400);
        for name in [&request.tenant, &request.subject] {
            if !is_name(name) {
                return Err(TokenError::BadName(name.clone()));
            }
        }
        if request.ttl < Span::from_secs(1) || request.ttl > LONGEST {
            return Err(TokenError::BadLifetime(request.ttl));
        }
        let claims = Claims {
            sub: request.subject.clone(),
            role: request.role,
            tenant: request.tenant.clone(),
            iat: seconds(request.now),
            exp: seconds(request.now.saturating_add(request.ttl)),
            iss: ISSUER.into(),
            jti: JobId::new(request.now, chance.ten_bytes()).to_string(),
            nbf: None,
        };
        jsonwebtoken::encode(&Header::new(ALGORITHM), &claims, &self.encoding)
            .map_err(TokenError::Unsigned)
    }

    /// Returns the claims of a token that this server has issued and that is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let token = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation)
            .map_err(TokenRefusal::Invalid)?;
        if token.header.crit.is_some() {
            return Err(TokenRefusal::Critical);
        }
        let (claims, now) = (token.claims, seconds(now));
        if now >= claims.exp {
            return Err(TokenRefusal::Expired);
        }
        if claims.iat.max(claims.nbf.unwrap_or(0)) > now + LEEWAY_SECS {
            return Err(TokenRefusal::Early);
        }
        Ok(claims)
    }
}

/// True if the name has 1 to 255 characters and no control characters.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.chars().count()) && !name.contains(char::is_control)
}

pub(crate) fn seconds(moment: Timestamp) -> u64 {
    u64::try_from(moment.as_micros() / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seven;

    impl Chance for Seven {
        fn bits(&self) -> u64 {
            7
        }
    }

    fn request() -> TokenRequest {
        TokenRequest {
            role: Role::Operator,
            tenant: "acme".into(),
            ttl: Span::from_secs(60),
            now: Timestamp::from_micros(1_800_000_000_000_000),
            subject: "ann".into(),
        }
    }

    fn tokens() -> Tokens {
        Tokens::new(&[7; SECRET_BYTES_MIN]).unwrap()
    }

    #[test]
    fn token_states_its_claims_until_it_expires() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let last = request().now.saturating_add(Span::from_secs(59));
        let claims = tokens().verify(&token, last).unwrap();
        assert_eq!((claims.sub.as_str(), claims.tenant.as_str()), ("ann", "acme"));
        assert_eq!((claims.role, claims.exp - claims.iat), (Role::Operator, 60));
        let over = request().now.saturating_add(Span::from_secs(60));
        assert!(matches!(tokens().verify(&token, over), Err(TokenRefusal::Expired)));
    }

    #[test]
    fn token_from_the_future_is_valid_within_the_clock_tolerance() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let back = |secs: i64| Timestamp::from_micros(request().now.as_micros() - secs * 1_000_000);
        assert!(tokens().verify(&token, back(60)).is_ok());
        assert!(matches!(tokens().verify(&token, back(61)), Err(TokenRefusal::Early)));
    }

    #[test]
    fn token_of_another_secret_is_refused() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let other = Tokens::new(&[8; SECRET_BYTES_MIN]).unwrap();
        assert!(matches!(other.verify(&token, request().now), Err(TokenRefusal::Invalid(_))));
    }

    #[test]
    fn short_secrets_empty_tenants_and_long_lifetimes_are_refused() {
        assert!(matches!(Tokens::new(&[7; 31]), Err(TokenError::ShortSecret(31))));
        let nameless = TokenRequest { tenant: String::new(), ..request() };
        assert!(matches!(tokens().issue(&nameless, &Seven), Err(TokenError::BadName(_))));
        for secs in [0, 4000 * 86_400] {
            let ttl = Span::from_secs(secs);
            let odd = tokens().issue(&TokenRequest { ttl, ..request() }, &Seven);
            assert!(matches!(odd, Err(TokenError::BadLifetime(_))));
        }
    }

    #[test]
    fn secret_of_tokens_is_not_printed() {
        assert_eq!(format!("{:?}", tokens()), "Tokens { .. }");
    }
}
