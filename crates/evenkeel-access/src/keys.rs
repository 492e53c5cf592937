//! API keys: long random secrets with which programs authenticate. The store contains only the hash
//! of an API key.

use evenkeel_core::chance::Chance;
use evenkeel_store::KeyHash;
use sha2::{Digest as _, Sha256};

/// Prefix of every API key, by which users and secret scanners recognise it.
pub const KEY_PREFIX: &str = "ek_";

/// Number of hexadecimal digits after the prefix of an API key.
const LETTERS: usize = 64;

/// The secret text of an API key. The server shows the secret once, when the API key is created.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

impl ApiKeySecret {
    /// Generates an API key of 256 random bits.
    pub fn draw(chance: &dyn Chance) -> Self {
        let bits: String = (0..4).map(|_| format!("{:016x}", chance.bits())).collect();
        Self(format!("{KEY_PREFIX}{bits}"))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> KeyHash {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl std::fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeySecret(ek_…)")
    }
}

/// Returns the hash of a text that has the format of an API key. An API key has 256 random bits, so
/// one round of SHA-256 without a salt is enough.
pub fn hash_of(text: &str) -> Option<KeyHash> {
    let letters = text.strip_prefix(KEY_PREFIX)?;
    let is_hex = letters.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (letters.len() == LETTERS && is_hex).then(|| Sha256::digest(text.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Counting(AtomicU64);

    impl Chance for Counting {
        fn bits(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    #[test]
    fn api_key_is_long_recognisable_and_not_printed() {
        let chance = Counting(AtomicU64::new(1));
        let (one, two) = (ApiKeySecret::draw(&chance), ApiKeySecret::draw(&chance));
        assert_eq!(one.reveal().len(), KEY_PREFIX.len() + LETTERS);
        assert_ne!(one, two);
        assert_eq!(hash_of(one.reveal()), Some(one.hash()));
        assert_ne!(one.hash(), two.hash());
        assert!(!format!("{one:?}").contains("0001"));
    }

    #[test]
    fn malformed_keys_have_no_hash() {
        let good = ApiKeySecret::draw(&Counting(AtomicU64::new(1)));
        let good = good.reveal();
        for bad in ["", "ek_", "ek_xyz", &good[1..], &good.to_uppercase(), &format!("{good}0")] {
            assert_eq!(hash_of(bad), None, "{bad}");
        }
    }
}
