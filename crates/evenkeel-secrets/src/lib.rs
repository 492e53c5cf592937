//! Named secrets of tenants.
//!
//! Values are encrypted before they reach the store, with keys that the store never sees
//! ([`Keyring`]). [`Secrets`] stores values, decrypts them when an attempt starts, and encrypts
//! them again when the key changes. Errors and logs name secrets and keys, never values.

mod keyring;
mod secrets;

pub use keyring::{KeyError, Keyring, OpenError};
pub use secrets::{Rotated, SecretError, Secrets};
