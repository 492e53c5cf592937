//! Tokens: who somebody is and what they may do, signed.

use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Span, Timestamp};
use evenkeel_store::Role;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::ring_provider::use_ring;

/// Who makes the tokens.
pub const ISSUER: &str = "evenkeel";

/// A secret shorter than the signature could be guessed before it is forged.
pub const SECRET_BYTES_MIN: usize = 32;

/// No token is longer.
pub(crate) const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// One algorithm, whatever a token's header says: else its bearer could choose how it is checked.
const ALGORITHM: Algorithm = Algorithm::HS256;

/// What a token says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Whom it was made for.
    pub sub: String,
    /// What they may do.
    pub role: Role,
    /// Where.
    pub tenant: String,
    /// When it was made, in seconds since 1970.
    pub iat: u64,
    /// From when on it is worth nothing.
    pub exp: u64,
    /// Who made it.
    pub iss: String,
    /// Its own id.
    pub jti: String,
    /// From when on it is worth something, if not at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
}

/// A token to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRequest {
    /// What its bearer may do.
    pub role: Role,
    /// Where.
    pub tenant: String,
    /// For how long it is good.
    pub ttl: Span,
    /// The time.
    pub now: Timestamp,
    /// Whom it is for.
    pub subject: String,
}

/// A token, or a maker of tokens, that can't be.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Too short a secret.
    #[error("the secret has {0} bytes, it needs at least {SECRET_BYTES_MIN}")]
    ShortSecret(usize),
    /// Not a name.
    #[error("{0:?} is not a name: 1 to 255 characters without control characters")]
    BadName(String),
    /// No time at all, or too much.
    #[error("{0} is no lifetime of a token: at least 1s, at most 3650d")]
    BadLifetime(Span),
    /// It could not be signed.
    #[error("the token could not be signed")]
    Unsigned(#[source] jsonwebtoken::errors::Error),
}

/// Why a token is worth nothing.
#[derive(Debug, thiserror::Error)]
pub enum TokenRefusal {
    /// Not made by us, or not for us.
    #[error("the token is not one of this server's")]
    Foreign(#[source] jsonwebtoken::errors::Error),
    /// Longer than any of ours.
    #[error("the token is not one of this server's")]
    TooLong,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not good yet; look at the clocks of both machines")]
    Early,
    /// It lacks a claim that is needed, or has one that means nothing.
    #[error("the token's claim {claim:?} {message}")]
    Claim {
        /// Which one.
        claim: String,
        /// What is wrong with it.
        message: &'static str,
    },
    /// It wants something understood that nobody here understands.
    #[error("the token has critical headers, and none of them is understood")]
    Critical,
    /// No key of the identity provider's fits.
    #[error("no key is known for the token")]
    UnknownKey,
}

/// Clocks of different machines differ. Nobody may use that to make a token live longer.
pub(crate) const LEEWAY_SECS: u64 = 60;

/// Makes and checks tokens.
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
    /// Tokens signed with `secret`.
    pub fn new(secret: &[u8]) -> Result<Self, TokenError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(TokenError::ShortSecret(secret.len()));
        }
        use_ring();
        let mut validation = Validation::new(ALGORITHM);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        // The library would ask the machine's clock; we are given the time.
        validation.validate_exp = false;
        Ok(Self {
            encoding: EncodingKey::from_secret(secret),
            decoding: DecodingKey::from_secret(secret),
            validation,
        })
    }

    /// Makes a token.
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

    /// What a token says, if it is one of ours and its time is not over.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefusal::TooLong);
        }
        let token = jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation)
            .map_err(TokenRefusal::Foreign)?;
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

/// 1 to 255 characters without control characters.
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
    fn a_token_says_what_was_asked_for_until_its_time_is_over() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let last = request().now.saturating_add(Span::from_secs(59));
        let claims = tokens().verify(&token, last).unwrap();
        assert_eq!((claims.sub.as_str(), claims.tenant.as_str()), ("ann", "acme"));
        assert_eq!((claims.role, claims.exp - claims.iat), (Role::Operator, 60));
        let over = request().now.saturating_add(Span::from_secs(60));
        assert!(matches!(tokens().verify(&token, over), Err(TokenRefusal::Expired)));
    }

    #[test]
    fn a_token_from_the_future_is_good_within_what_clocks_differ() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let back = |secs: i64| Timestamp::from_micros(request().now.as_micros() - secs * 1_000_000);
        assert!(tokens().verify(&token, back(60)).is_ok());
        assert!(matches!(tokens().verify(&token, back(61)), Err(TokenRefusal::Early)));
    }

    #[test]
    fn another_secret_is_another_server() {
        let token = tokens().issue(&request(), &Seven).unwrap();
        let other = Tokens::new(&[8; SECRET_BYTES_MIN]).unwrap();
        assert!(matches!(other.verify(&token, request().now), Err(TokenRefusal::Foreign(_))));
    }

    #[test]
    fn a_short_secret_a_nameless_tenant_and_an_endless_token_are_refused() {
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
    fn the_secret_is_not_shown_by_accident() {
        assert_eq!(format!("{:?}", tokens()), "Tokens { .. }");
    }
}
