//! Named secrets of a tenant.
//!
//! A value is encrypted before it reaches the store, with a key that the store never sees
//! ([`Keyring`]). [`Secrets`] stores values, gives them to attempts that start, and encrypts them anew
//! when the key changes. Nothing here ever shows a value: messages name secrets and keys only.

mod keyring;
mod secrets;

pub use keyring::{KeyError, Keyring, OpenError};
pub use secrets::{Rotated, SecretError, Secrets};
