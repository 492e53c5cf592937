//! Who may come in, and who did what.
//!
//! A [`Door`] tells from a credential who somebody is: a token of this server's own, one of an
//! identity provider, or an API key. The [`Limiter`] slows down those who try many. The [`AuditLog`]
//! writes down what was done and what was refused. Nothing here knows HTTP.

mod access;
mod audit;
mod door;
mod foreign;
mod keys;
mod limiter;
mod ring_provider;
mod tenants;
mod tokens;

pub use access::{Access, Upkeep};
pub use audit::AuditLog;
pub use door::{Door, Identity, Refusal, Trust};
pub use foreign::{ForeignAlgorithm, ForeignKeys, ForeignSettings, ForeignTokens, KeyFault};
pub use keys::{KEY_PREFIX, Secret, hash_of};
pub use limiter::{FAILURES_MAX, Limiter, Verdict};
pub use ring_provider::use_ring;
pub use tenants::{DEFAULT_TENANT, Tenants};
pub use tokens::{
    Claims, ISSUER, SECRET_BYTES_MIN, TokenError, TokenRefusal, TokenRequest, Tokens,
};
