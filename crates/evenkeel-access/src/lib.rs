//! Authentication, rate limits for failed authentication, and the audit log, without a dependency
//! on HTTP.
//!
//! - [`Authenticator`]: identifies the sender of a credential, which is a token of this server
//!   ([`Tokens`]), a token of an external identity provider ([`ExternalTokens`]) or an API key
//!   ([`ApiKeySecret`])
//! - [`Limiter`]: blocks IP addresses that send many invalid credentials
//! - [`AuditLog`]: records changes and refused requests
//! - [`Tenants`]: caches the numbers of tenants
//! - [`Access`]: combines the types above

mod access;
mod audit;
mod authenticator;
mod external;
mod keys;
mod limiter;
mod ring_provider;
mod tenants;
mod tokens;

pub use access::{Access, TooManyFailures, Upkeep};
pub use audit::AuditLog;
pub use authenticator::{Authenticator, Identity, Refusal, Trust};
pub use external::{ExternalAlgorithm, ExternalKeys, ExternalSettings, ExternalTokens, KeyFault};
pub use keys::{ApiKeySecret, KEY_PREFIX, hash_of};
pub use limiter::{FAILURES_MAX, Limiter, Verdict};
pub use ring_provider::use_ring;
pub use tenants::{DEFAULT_TENANT, Tenants};
pub use tokens::{
    Claims, ISSUER, SECRET_BYTES_MIN, TokenError, TokenRefusal, TokenRequest, Tokens,
};
