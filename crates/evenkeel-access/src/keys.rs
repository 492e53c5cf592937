//! API keys: long secrets for programs. Only their hash is kept.

use evenkeel_core::chance::Chance;
use evenkeel_store::KeyHash;
use sha2::{Digest as _, Sha256};

/// What every key begins with, so that people and scanners know one when they see it.
pub const KEY_PREFIX: &str = "ek_";

/// So many letters follow.
const LETTERS: usize = 64;

/// A key as its bearer has it. It is shown once, to whoever made it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Draws 256 bits.
    pub fn draw(chance: &dyn Chance) -> Self {
        let bits: String = (0..4).map(|_| format!("{:016x}", chance.bits())).collect();
        Self(format!("{KEY_PREFIX}{bits}"))
    }

    /// The text. Whoever has it has the key.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> KeyHash {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(ek_…)")
    }
}

/// The hash of a text that looks like a key. It has 256 bits of chance in it: nothing slower than
/// one round is needed, and no salt.
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
    fn a_key_is_long_known_by_its_beginning_and_never_shown_by_accident() {
        let chance = Counting(AtomicU64::new(1));
        let (one, two) = (Secret::draw(&chance), Secret::draw(&chance));
        assert_eq!(one.reveal().len(), KEY_PREFIX.len() + LETTERS);
        assert_ne!(one, two);
        assert_eq!(hash_of(one.reveal()), Some(one.hash()));
        assert_ne!(one.hash(), two.hash());
        assert!(!format!("{one:?}").contains("0001"));
    }

    #[test]
    fn what_cannot_be_a_key_is_not_looked_up() {
        let good = Secret::draw(&Counting(AtomicU64::new(1)));
        let good = good.reveal();
        for bad in ["", "ek_", "ek_xyz", &good[1..], &good.to_uppercase(), &format!("{good}0")] {
            assert_eq!(hash_of(bad), None, "{bad}");
        }
    }
}
