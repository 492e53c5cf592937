//! Named secrets of tenants.
//!
//! Secret values are encrypted before they reach the store, with keys that the store never sees
//! ([`Keyring`]). [`Secrets`] stores secret values, decrypts them when an attempt starts, and
//! encrypts them again when the encryption key changes. Errors and logs never contain secret
//! values.

mod keyring;
mod secrets;

pub use keyring::{KeyError, Keyring, OpenError};
pub use secrets::{Rotated, SecretError, Secrets};
